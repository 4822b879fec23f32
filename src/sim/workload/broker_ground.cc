#include "sim/workload/broker_ground.h"

#include "broker/data_folder.h"
#include "metadata/log/sqlite/sqlite_log.h"
#include "object_store/fs/folder_store.h"

namespace varve::sim {
namespace {

using Opened = Result<void, std::string>;

class SharedGround final : public BrokerGround {
 public:
  SharedGround(Process& process, SimMetadataLog& log, SimObjectStore& store)
      : log_(log.client(process)), store_(store.client(process.node().host())) {}

  runtime::Task<Opened> open() override { co_return Opened(); }
  metadata::MetadataLog& log() override { return *log_; }
  object_store::ObjectStore& store() override { return *store_; }

 private:
  std::unique_ptr<metadata::MetadataLog> log_;
  std::unique_ptr<object_store::ObjectStore> store_;
};

constexpr const char* kDataFolder = "/data";

// Small, so that a run of some seconds meets checkpoints of the write-ahead log.
metadata::SqliteLogOptions small_log(uint64_t ballast_bytes) {
  metadata::SqliteLogOptions options = broker::log_options_in(kDataFolder);
  options.ballast_bytes = ballast_bytes;
  options.checkpoint_bytes = 128 * 1024;
  return options;
}

class DiskGround final : public BrokerGround {
 public:
  DiskGround(Process& process, const std::string& key_namespace, uint64_t ballast_bytes)
      : process_(process),
        store_(process, broker::store_options_in(kDataFolder, key_namespace)),
        log_(process, small_log(ballast_bytes)) {}

  runtime::Task<Opened> open() override {
    auto made = co_await runtime::offload(process_, runtime::Lane::kDisk, [&process = process_] {
      return runtime::make_folders(process.file_system(), kDataFolder);
    });
    if (!made) co_return Opened(std::unexpected(std::move(made.error().message)));
    auto opened = co_await store_.open();
    if (!opened) co_return Opened(std::unexpected(std::move(opened.error().message)));
    co_return Opened();
  }
  metadata::MetadataLog& log() override { return log_; }
  object_store::ObjectStore& store() override { return store_; }

 private:
  Process& process_;
  object_store::FolderStore store_;
  metadata::SqliteLog log_;
};

}  // namespace

std::unique_ptr<BrokerGround> make_shared_ground(Process& process, SimMetadataLog& log,
                                                 SimObjectStore& store) {
  return std::make_unique<SharedGround>(process, log, store);
}

std::unique_ptr<BrokerGround> make_disk_ground(Process& process, std::string key_namespace,
                                               uint64_t ballast_bytes) {
  return std::make_unique<DiskGround>(process, key_namespace, ballast_bytes);
}

}  // namespace varve::sim
