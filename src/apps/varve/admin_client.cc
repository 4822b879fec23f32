#include "apps/varve/admin_client.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "broker/settings/setting_table.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"

namespace varve::apps {
namespace {

constexpr Duration kPatience = 10s;
constexpr size_t kAnswerBytesMax = 64 * kMiB;

// Everything up to the end of the connection, which the request asks for.
runtime::Task<runtime::NetResult<std::string>> exchange(runtime::Runtime& runtime, runtime::Address address,
                                                        std::string request) {
  using Exchanged = runtime::NetResult<std::string>;
  auto stream = co_await runtime.network().connect(address, runtime.now() + kPatience);
  if (!stream) co_return pass_error(stream);
  runtime::TaskContext& context = co_await runtime::this_context();
  std::unique_ptr<runtime::Timer> timer =
      context.executor->start_timer(runtime.now() + kPatience, [&stream] { (*stream)->close(); });
  std::array<ByteView, 1> slices = {as_bytes(request)};
  auto written = co_await (*stream)->write(slices);
  if (!written) co_return pass_error(written);
  std::string answer;
  std::array<uint8_t, 16 * 1024> buffer;
  while (answer.size() < kAnswerBytesMax) {
    auto read = co_await (*stream)->read_some(buffer);
    if (!read) co_return pass_error(read);
    if (*read == 0) break;
    answer += as_text(ByteView(buffer).first(*read));
  }
  co_return Exchanged(std::move(answer));
}

}  // namespace

Result<std::string, std::string> admin_get(const std::string& address, const std::string& target) {
  constexpr uint16_t kHttpPort = 9093;
  auto place = broker::parse_address(address, kHttpPort);
  if (!place) return std::unexpected(fmt::format("{} is not host:port", address));
  runtime::AsioRuntime runtime({.io_threads = 1, .disk_threads = 1});
  std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", target, address);
  auto answer = runtime::run_blocking(runtime.io(0), exchange(runtime, *place, request));
  runtime.stop();
  if (!answer) return std::unexpected(fmt::format("cannot ask {}: {}", address, answer.error().message));
  size_t blank = answer->find("\r\n\r\n");
  if (!answer->starts_with("HTTP/1.1 ") || blank == std::string::npos) {
    return std::unexpected(fmt::format("{} does not speak HTTP", address));
  }
  std::string body = answer->substr(blank + 4);
  if (answer->substr(9, 4) != "200 ") {
    return std::unexpected(fmt::format("{} answers {} {}", address, answer->substr(9, 3), body));
  }
  return body;
}

}  // namespace varve::apps
