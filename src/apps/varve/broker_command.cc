#include "apps/varve/broker_command.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "apps/varve/exit_codes.h"
#include "apps/varve/line_sink.h"
#include "apps/varve/process_metrics.h"
#include "apps/varve/record_store.h"
#include "apps/varve/version.h"
#include "broker/broker.h"
#include "broker/data_folder.h"
#include "broker/settings/settings.h"
#include "metadata/log/sqlite/sqlite_log.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/task_scope.h"

namespace varve::apps {
namespace {

// What the broker stands on, and how its intervals fit what a PUT costs there: a disk's sync, or money.
broker::BrokerWorld world_of(runtime::Runtime& runtime, RecordStore& records, metadata::MetadataLog& log) {
  broker::BrokerWorld world{runtime, records.store(), log};
  if (records.is_bucket()) {
    world.snapshot_after_time = 10min;
  } else {
    world.commit_interval = 5ms;
    world.fence_interval = 60s;
  }
  return world;
}

void complain(std::string_view sentence) { fmt::print(stderr, "varve: {}\n", sentence); }

std::optional<broker::LoadedSettings> load(const BrokerOptions& options) {
  std::optional<std::string> file_text;
  if (!options.config_file.empty()) {
    std::ifstream file(options.config_file);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      complain(fmt::format("cannot read the configuration file {}", options.config_file));
      return std::nullopt;
    }
    file_text = text.str();
  }
  auto loaded = broker::load_settings(broker::process_environment(), file_text);
  if (!loaded) {
    complain(loaded.error().to_string());
    return std::nullopt;
  }
  return std::move(*loaded);
}

size_t usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<size_t>(std::max(CPU_COUNT(&set), 1));
}

// A connection is a descriptor, and the usual soft limit is 1,024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A disk that does not answer would not answer a second call either: there is one attempt, as long as it takes.
broker::LoadedSettings for_its_store(broker::LoadedSettings loaded) {
  Limits& limits = loaded.settings.limits;
  if (loaded.settings.s3.bucket.empty()) limits.object_attempt_max = limits.object_deadline_max;
  return loaded;
}

// What the main thread waits for.
struct End {
  enum class Kind : uint8_t { kStarted, kFailed, kSignal };
  Kind kind;
  std::string message;
};

// One broker process, from settings to exit code.
class BrokerProcess {
 public:
  BrokerProcess(broker::LoadedSettings loaded, RecordPlace place)
      : loaded_(for_its_store(std::move(loaded))),
        settings_(loaded_.settings),
        runtime_({.io_threads = settings_.io_threads != 0 ? settings_.io_threads : usable_processors(),
                  .disk_threads = 8}),
        sink_(STDERR_FILENO, settings_.log_format),
        logger_(
            sink_, [this] { return runtime_.wall_now(); }, settings_.log_level, "broker"),
        records_(runtime_, std::move(place)),
        log_(runtime_, broker::log_options_in(settings_.data_folder)),
        broker_(world_of(runtime_, records_, log_), settings_, logger_, metrics_) {
    add_process_metrics(metrics_, runtime_);
  }

  int run() {
    for (const std::string& warning : loaded_.warnings) logger_.warn(warning);
    for (const auto& [name, value] : loaded_.given) {
      logger_.info("setting", {{"name", name}, {"value", value}});
    }
    constexpr std::array kSignals = {SIGTERM, SIGINT};
    runtime::Executor& io = runtime_.io(0);
    waiting_.spawn(io, "signal", tell_signal(runtime_.on_signal(kSignals)));
    waiting_.spawn(io, "start", tell_start());
    End end = runtime::run_blocking(io, wait(started_));
    if (end.kind == End::Kind::kFailed) {
      complain(end.message);
      leave(kExitFailed);
    }
    // Nothing was served, so nothing has to be put in order.
    if (end.kind == End::Kind::kSignal) leave(kExitDone);
    fmt::print("{} serves Kafka on {}, HTTP on {}, with its data in {}\n", version_text(),
               broker_.kafka_address().to_string(), broker_.http_address().to_string(), records_.name());
    std::fflush(stdout);

    waiting_.spawn(io, "fatal", tell_fatal());
    end = runtime::run_blocking(io, wait(ended_));
    if (end.kind == End::Kind::kFailed) {
      // What it holds is not to be trusted any more: end as a crash would, which everything is made to survive.
      complain(end.message);
      leave(kExitFailed);
    }
    logger_.info("stopping");
    runtime::run_blocking(io, stop());
    runtime_.stop();
    return kExitDone;
  }

 private:
  // Without waiting for threads and tasks.
  [[noreturn]] static void leave(int code) {
    std::fflush(nullptr);
    std::_Exit(code);
  }

  static runtime::Task<End> wait(runtime::Completion<End> end) { co_return co_await end.wait(); }

  runtime::Task<> tell_signal(runtime::Completion<int> signal) {
    co_await runtime::wait_until(signal, MonotonicTime::never(), 0);
    started_.set({End::Kind::kSignal, ""});
    ended_.set({End::Kind::kSignal, ""});
  }
  runtime::Task<> tell_fatal() {
    metadata::FatalError none;
    metadata::FatalError error = co_await runtime::wait_until(broker_.fatal(), MonotonicTime::never(), none);
    ended_.set({End::Kind::kFailed, std::move(error.message)});
  }
  runtime::Task<> tell_start() {
    auto opened = co_await open();
    if (!opened) {
      started_.set({End::Kind::kFailed, std::move(opened.error())});
      co_return;
    }
    auto started = co_await broker_.start();
    if (started) {
      started_.set({End::Kind::kStarted, ""});
    } else {
      started_.set({End::Kind::kFailed, std::move(started.error().message)});
    }
  }

  runtime::Task<Result<void, std::string>> open() {
    using Opened = Result<void, std::string>;
    std::string folder = settings_.data_folder;
    auto made = co_await runtime::offload(runtime_, runtime::Lane::kDisk, [this, folder] {
      return runtime::make_folders(runtime_.file_system(), folder);
    });
    if (!made) {
      co_return Opened(std::unexpected(fmt::format("cannot make the data folder {} (KAFSCALE_DATA_DIR): {}",
                                                   folder, made.error().message)));
    }
    co_return co_await records_.open();
  }

  runtime::Task<> stop() {
    co_await broker_.stop();
    co_await log_.close();
    co_await records_.close();
    co_await waiting_.close();
  }

  const broker::LoadedSettings loaded_;
  const broker::Settings& settings_;
  runtime::AsioRuntime runtime_;
  LineSink sink_;
  Logger logger_;
  MetricRegistry metrics_;
  RecordStore records_;
  metadata::SqliteLog log_;
  broker::Broker broker_;
  runtime::Completion<End> started_;
  runtime::Completion<End> ended_;
  runtime::TaskScope waiting_;
};

}  // namespace

int run_broker(const BrokerOptions& options) {
  if (options.print_configuration_docs) {
    fmt::print("{}", broker::configuration_page());
    return kExitDone;
  }
  std::optional<broker::LoadedSettings> loaded = load(options);
  if (!loaded) return kExitUsage;
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  auto place = record_place_of(loaded->settings);
  if (!place) {
    complain(place.error());
    return kExitUsage;
  }
  BrokerProcess process(std::move(*loaded), std::move(*place));
  return process.run();
}

}  // namespace varve::apps
