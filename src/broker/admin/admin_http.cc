#include "broker/admin/admin_http.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "base/limits.h"

namespace varve::broker {
namespace {

using runtime::http::Request;
using runtime::http::Response;

constexpr uint64_t kEntriesMax = 1000;
constexpr size_t kPageBytes = kMiB;

Response text(unsigned status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

std::optional<uint64_t> number(const Request& request, const std::string& name, uint64_t otherwise) {
  auto found = request.query.find(name);
  if (found == request.query.end()) return otherwise;
  uint64_t value = 0;
  const std::string& digits = found->second;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string Readiness::problem(const metadata::MetadataClient* metadata) const {
  switch (phase_.load()) {
    case Phase::kStarting:
      return "starting";
    case Phase::kStopping:
      return "stopping";
    case Phase::kServing:
      break;
  }
  if (metadata == nullptr) return "starting";
  Duration silence = metadata->since_progress();
  if (silence <= kProgressMax) return {};
  return fmt::format("no word of the metadata log for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(silence).count());
}

runtime::Task<Response> AdminHttp::handle(Request request) {
  if (request.path == "/metrics") {
    Response response = text(200, metrics_.to_prometheus_text());
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    co_return response;
  }
  // Alive is all that the status says; the word is the object store's state, as KafScale tells it.
  if (request.path == "/healthz") {
    co_return text(200, fmt::format("ok state={}\n", object_store::store_health_name(store_.health())));
  }
  std::string problem = readiness_.problem(metadata_);
  if (request.path == "/readyz") {
    if (problem.empty()) co_return text(200, "ready\n");
    co_return text(503, fmt::format("not ready: {}\n", problem));
  }
  if (request.path == "/log") co_return co_await show_log(std::move(request));
  co_return text(404, "there is: /metrics /healthz /readyz /log?after=POSITION&limit=ENTRIES\n");
}

// Lines of "<position> <entry in hexadecimal>", at most `limit`, after position `after`; `varve inspect` makes them
// readable, so that the broker need not.
runtime::Task<Response> AdminHttp::show_log(Request request) {
  std::optional<uint64_t> after = number(request, "after", 0);
  std::optional<uint64_t> limit = number(request, "limit", 100);
  if (!after || !limit || *limit == 0 || *limit > kEntriesMax) {
    co_return text(400, fmt::format("after and limit are numbers, limit from 1 to {}\n", kEntriesMax));
  }
  if (readiness_.phase() == Readiness::Phase::kStarting) co_return text(503, "starting\n");
  auto page = co_await log_.read(LogPosition(*after), kPageBytes);
  if (!page) co_return text(503, page.error().message + "\n");
  std::string body;
  uint64_t count = 0;
  for (const metadata::LogEntry& entry : page->entries) {
    if (count++ == *limit) break;
    body += fmt::format("{} {}\n", entry.position, to_hex(entry.bytes.view()));
  }
  co_return text(200, std::move(body));
}

}  // namespace varve::broker
