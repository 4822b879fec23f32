#include "runtime/asio/asio_runtime.h"

#include <sys/random.h>

#include <array>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <chrono>
#include <vector>

#include "base/check.h"
#include "runtime/asio/asio_executor.h"
#include "runtime/asio/asio_network.h"
#include "runtime/asio/offload_lane.h"
#include "runtime/asio/posix_file_system.h"

namespace varve::runtime {

struct AsioRuntime::Impl {
  Impl(AsioRuntime& runtime, const AsioOptions& options) : network(runtime) {
    CHECK(options.io_threads >= 1 && options.io_threads <= 256, "{} io threads", options.io_threads);
    CHECK(options.disk_threads >= 1 && options.disk_threads <= 256, "{} disk threads", options.disk_threads);
    core = std::make_unique<AsioExecutor>("varve-core");
    for (size_t i = 0; i < options.io_threads; ++i) {
      io.push_back(std::make_unique<AsioExecutor>(fmt::format("varve-io-{}", i)));
    }
    auto lane = [this](Lane which) -> auto& { return lanes[static_cast<size_t>(which)]; };
    lane(Lane::kLog) = std::make_unique<OffloadLane>(OffloadLane::Options{"varve-log"});
    lane(Lane::kDisk) =
        std::make_unique<OffloadLane>(OffloadLane::Options{"varve-disk", options.disk_threads});
    lane(Lane::kBulk) = std::make_unique<OffloadLane>(OffloadLane::Options{"varve-bulk", 1, true});
    lane(Lane::kResolve) = std::make_unique<OffloadLane>(OffloadLane::Options{"varve-resolve"});
  }

  AsioNetwork network;
  PosixFileSystem files;
  std::unique_ptr<AsioExecutor> core;
  std::vector<std::unique_ptr<AsioExecutor>> io;
  std::array<std::unique_ptr<OffloadLane>, kLaneCount> lanes;
};

AsioRuntime::AsioRuntime(AsioOptions options) : impl_(std::make_unique<Impl>(*this, options)) {}

AsioRuntime::~AsioRuntime() { stop(); }

MonotonicTime AsioRuntime::now() const { return impl_->core->now(); }

WallTime AsioRuntime::wall_now() const {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return WallTime(std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count());
}

uint64_t AsioRuntime::random_seed() {
  uint64_t seed = 0;
  ssize_t got;
  do {
    got = ::getrandom(&seed, sizeof(seed), 0);
  } while (got < 0 && errno == EINTR);
  CHECK(got == sizeof(seed), "getrandom gave {}", got);
  return seed;
}

Executor& AsioRuntime::core() { return *impl_->core; }
size_t AsioRuntime::io_count() const { return impl_->io.size(); }
Executor& AsioRuntime::io(size_t index) { return *impl_->io.at(index); }
void AsioRuntime::offload(Lane lane, Job job) {
  impl_->lanes[static_cast<size_t>(lane)]->post(std::move(job));
}
FileSystem& AsioRuntime::file_system() { return impl_->files; }
Network& AsioRuntime::network() { return impl_->network; }

void AsioRuntime::stop() {
  // Lanes first, so that their results still find an executor; the core last, so that io jobs still find it.
  for (auto& lane : impl_->lanes) lane->stop();
  for (auto& executor : impl_->io) executor->stop();
  impl_->core->stop();
}

Completion<int> AsioRuntime::on_signal(std::span<const int> signals) {
  Completion<int> arrived;
  auto set = std::make_shared<boost::asio::signal_set>(impl_->core->context());
  for (int number : signals) {
    boost::system::error_code error;
    set->add(number, error);
    CHECK(!error, "signal {}: {}", number, error.message());
  }
  // The handler owns the set: when it has run, the set is gone and the signals have their old effect.
  set->async_wait([arrived, set](const boost::system::error_code& error, int number) {
    if (!error) arrived.set(number);
  });
  return arrived;
}

}  // namespace varve::runtime
