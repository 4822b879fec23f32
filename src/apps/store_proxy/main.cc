// The proxy that makes an object store slow or wrong: see docs/testing.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <cstdio>

#include "apps/store_proxy/store_proxy.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"

namespace {

using varve::runtime::Task;

Task<bool> start(varve::apps::StoreProxy* proxy) {
  auto started = proxy->start();
  if (!started) fmt::print(stderr, "varve_store_proxy: {}\n", started.error().message);
  co_return started.has_value();
}

Task<> wait_for(varve::runtime::Completion<int> signal) { co_await signal.wait(); }

}  // namespace

int main(int argc, char** argv) {
  varve::apps::StoreProxyOptions options;
  options.listen = options.store = {"127.0.0.1", 0};
  std::vector<std::string> values;
  CLI::App program("Stands between a broker and its object store, counts, and makes requests slow or wrong");
  program.add_option("--port", options.listen.port, "Port to listen on, of 127.0.0.1")->required();
  program.add_option("--store-port", options.store.port, "Port of the store, of 127.0.0.1")->required();
  program.add_option("--seed", options.seed, "Of what is drawn");
  program.add_option("values", values, "name=value, as POST /_proxy/set takes them (put-p50-ms=50 ...)");
  CLI11_PARSE(program, argc, argv);
  for (const std::string& value : values) {
    size_t equals = std::min(value.find('='), value.size());
    auto problem =
        options.disturbance.set(value.substr(0, equals), value.substr(std::min(equals + 1, value.size())));
    if (!problem) continue;
    fmt::print(stderr, "varve_store_proxy: {}\n", *problem);
    return 2;
  }
  if (auto problem = options.disturbance.problem()) {
    fmt::print(stderr, "varve_store_proxy: {}\n", *problem);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  varve::runtime::AsioRuntime runtime({.io_threads = 1});
  constexpr std::array kSignals = {SIGTERM, SIGINT};
  auto signal = runtime.on_signal(kSignals);
  varve::apps::StoreProxy proxy(runtime, std::move(options));
  if (!varve::runtime::run_blocking(runtime.io(0), start(&proxy))) return 1;
  varve::runtime::run_blocking(runtime.io(0), wait_for(signal));
  varve::runtime::run_blocking(runtime.io(0), proxy.stop());
  return 0;
}
