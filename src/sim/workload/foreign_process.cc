#include "sim/workload/foreign_process.h"

#include "metadata/state/object_key.h"

namespace varve::sim {

ForeignProcess::ForeignProcess(World& world, SimObjectStore& store, std::string key_prefix)
    : world_(world), store_(store), key_prefix_(std::move(key_prefix)), random_(world.random().fork()) {}

void ForeignProcess::start(Duration mean_gap) {
  is_running_ = true;
  mean_gap_ = mean_gap;
  write();
}

void ForeignProcess::write() {
  if (!is_running_) return;
  world_.after(Duration(random_.between(0, 2 * mean_gap_.count())), [this] {
    if (!is_running_) return;
    store_.foreign_put(draw_key(), Slice::copy_of(as_bytes("not varve's")));
    write();
  });
}

// What looks most like varve's own is the hardest to leave alone.
std::string ForeignProcess::draw_key() {
  std::string log_id;
  for (const auto& [key, object] : store_.objects()) {
    size_t at = key.find("/_log/snapshots/");
    if (at != std::string::npos) log_id = key.substr(at + 16, 32);
  }
  metadata::WalObjectName name{.log_id = random_.uuid(),
                               .nonce = Nonce(random_.next()),
                               .epoch = FenceEpoch(random_.below(2)),
                               .number = ObjectNumber(1 + random_.below(5))};
  switch (random_.below(6)) {
    case 0:
      return metadata::wal_key(key_prefix_, name);
    case 1: {
      // Of this log, but of a nonce that it never registered.
      for (const auto& [key, object] : store_.objects()) {
        auto own = metadata::parse_wal_key(key_prefix_, key);
        if (own && !object.host.empty()) name.log_id = own->log_id;
      }
      return metadata::wal_key(key_prefix_, name);
    }
    case 2:
      return fmt::format("{}/_wal/aa/{:016x}", key_prefix_, random_.next());
    case 3:
      return fmt::format("{}/_log/chunks/{}/{:016x}", key_prefix_, log_id.empty() ? "none" : log_id,
                         random_.next());
    case 4:
      return fmt::format("{}/_log/snapshots/{}/{:016x}-{:016x}", key_prefix_, to_hex(random_.uuid().bytes),
                         random_.below(1'000), random_.next());
    default:
      return fmt::format("{}/lasting/0/segment-{:020}.kfs", key_prefix_, random_.below(100));
  }
}

}  // namespace varve::sim
