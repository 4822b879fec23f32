#include "apps/store_proxy/disturbance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

namespace varve::apps {
namespace {

constexpr std::pair<std::string_view, Fate> kFates[] = {
    {"throttled", Fate::kThrottled},    {"failed", Fate::kFailed},       {"skewed", Fate::kSkewed},
    {"reply-lost", Fate::kReplyLost},   {"stalled", Fate::kStalled},     {"cut", Fate::kCut},
    {"error-after", Fate::kErrorAfter}, {"corrupted", Fate::kCorrupted},
};
// Of the normal distribution: 99 of 100 lie below.
constexpr double kQuantile99 = 2.3263478740408408;

// Uniform in (0, 1].
double unit(Random& random) { return (static_cast<double>(random.next() >> 11) + 1) * 0x1.0p-53; }

}  // namespace

std::string_view request_kind_name(RequestKind kind) {
  switch (kind) {
    case RequestKind::kPut:
      return "put";
    case RequestKind::kGet:
      return "get";
    case RequestKind::kHead:
      return "head";
    case RequestKind::kList:
      return "list";
    case RequestKind::kDelete:
      return "delete";
  }
  return "unknown";
}

RequestKind kind_of(const runtime::http::Message& request) {
  if (request.method == "PUT") return RequestKind::kPut;
  if (request.method == "HEAD") return RequestKind::kHead;
  // DeleteObjects is the one POST that a store of varve's hears.
  if (request.method == "DELETE" || request.method == "POST") return RequestKind::kDelete;
  return request.target.find("list-type=") != std::string::npos ? RequestKind::kList : RequestKind::kGet;
}

Duration Latency::draw(Random& random) const {
  if (p50 <= Duration(0)) return Duration(0);
  double sigma = std::log(static_cast<double>(p99.count()) / static_cast<double>(p50.count())) / kQuantile99;
  double normal = std::sqrt(-2 * std::log(unit(random))) * std::cos(2 * std::numbers::pi * unit(random));
  return Duration(static_cast<int64_t>(static_cast<double>(p50.count()) * std::exp(sigma * normal)));
}

Fate Disturbance::draw_fate(Random& random) const {
  uint64_t drawn = random.below(1000);
  for (auto [fate, share] : per_mille) {
    if (drawn < share) return fate;
    drawn -= share;
  }
  return Fate::kServed;
}

std::optional<std::string> Disturbance::set(std::string_view name, std::string_view value) {
  uint32_t number = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    return fmt::format("{}={}: not a whole number", name, value);
  }
  auto fate = std::ranges::find(kFates, name, &std::pair<std::string_view, Fate>::first);
  if (fate != std::end(kFates)) {
    per_mille[fate->second] = number;
    return std::nullopt;
  }
  for (auto [known, span] : {std::pair{"put-p50-ms", &put.p50},
                             {"put-p99-ms", &put.p99},
                             {"get-p50-ms", &get.p50},
                             {"get-p99-ms", &get.p99},
                             {"stall-ms", &stall}}) {
    if (name != known) continue;
    *span = std::chrono::milliseconds(number);
    return std::nullopt;
  }
  return fmt::format("{}: no such value", name);
}

std::optional<std::string> Disturbance::problem() const {
  uint64_t sum = 0;
  for (auto [fate, share] : per_mille) sum += share;
  if (sum > 1000) return "more than 1,000 per mille of the requests go wrong";
  if (put.p99 < put.p50 || get.p99 < get.p50) return "a p99 lies below its p50";
  return std::nullopt;
}

}  // namespace varve::apps
