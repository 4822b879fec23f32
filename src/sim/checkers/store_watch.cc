#include "sim/checkers/store_watch.h"

#include <algorithm>
#include <limits>

#include "sim/checkers/snapshot_objects.h"

namespace varve::sim {

StoreWatch::StoreWatch(World& world, SimObjectStore& store, LogAudit& audit, std::string key_prefix,
                       Findings& findings)
    : world_(world), store_(store), audit_(audit), key_prefix_(std::move(key_prefix)), findings_(findings) {
  store.set_observer([this](const StoreEvent& event) { on_event(event); });
}

void StoreWatch::on_event(const StoreEvent& event) {
  if (event.host.empty()) {
    foreign_.insert(event.key);
  } else if (event.kind == StoreEvent::Kind::kPut) {
    on_put(event);
  } else if (event.had_object) {
    on_delete(event);
  }
}

void StoreWatch::on_put(const StoreEvent& event) {
  auto deleted = deleted_.find(event.key);
  findings_.require(deleted == deleted_.end() || event.asked_at <= deleted->second,
                    "{} wrote {} again, which was deleted before", event.host, event.key);
  findings_.require(!event.had_object || event.is_same_bytes, "{} wrote over {} with other bytes", event.host,
                    event.key);
}

void StoreWatch::on_delete(const StoreEvent& event) {
  deleted_.insert_or_assign(event.key, world_.now());
  if (foreign_.contains(event.key)) {
    findings_.add(fmt::format("{} deleted {}, which a foreign process wrote", event.host, event.key));
    return;
  }
  auto name = metadata::parse_wal_key(key_prefix_, event.key);
  if (name) return check_wal_deletion(event, *name);
  bool is_snapshot = event.key.starts_with(key_prefix_ + "/_log/snapshots/") ||
                     event.key.starts_with(key_prefix_ + "/_log/chunks/");
  findings_.require(is_snapshot, "{} deleted {}", event.host, event.key);
  check_snapshot_deletion(event);
}

void StoreWatch::check_wal_deletion(const StoreEvent& event, const metadata::WalObjectName& name) {
  auto object = object_of(event.key);
  findings_.require(object.has_value(), "{} deleted {}, whose nonce the log never registered", event.host,
                    event.key);
  if (!object) return;
  findings_.require(!live_objects().contains(*object), "{} deleted {}, which is in use", event.host,
                    event.key);
  findings_.require(name.epoch < audit_.fence(), "{} deleted {}, which the fence at {} has not passed",
                    event.host, event.key, audit_.fence());
}

// What a retained snapshot is made of stays.
void StoreWatch::check_snapshot_deletion(const StoreEvent& event) {
  audit_.catch_up();
  for (const metadata::RetainedSnapshot& snapshot : audit_.state().snapshots()) {
    findings_.require(find_snapshot(store_, snapshot.position).has_value(),
                      "{} deleted {}, and the retained snapshot at {} is not whole any more", event.host,
                      event.key, snapshot.position);
  }
}

std::optional<metadata::ObjectId> StoreWatch::object_of(const std::string& key) {
  auto name = metadata::parse_wal_key(key_prefix_, key);
  if (!name) return std::nullopt;
  audit_.catch_up();
  auto incarnation = audit_.state().incarnation_of(name->nonce);
  if (!incarnation) return std::nullopt;
  return metadata::ObjectId{*incarnation, name->number};
}

const std::map<metadata::ObjectId, FenceEpoch>& StoreWatch::live_objects() {
  audit_.catch_up();
  const metadata::State& state = audit_.state();
  if (live_at_ == state.position()) return live_;
  live_at_ = state.position();
  live_.clear();
  for (const auto& [id, topic] : state.topics()) {
    for (PartitionHandle handle : topic.partitions) {
      auto view = state.partition(handle);
      auto plan = state.plan_fetch(handle, view->log_start, std::numeric_limits<uint64_t>::max(), false);
      for (const metadata::StoredRun& run : plan->runs) {
        live_[run.object] = state.object_epoch(run.object).value_or(FenceEpoch(0));
      }
    }
  }
  return live_;
}

std::vector<std::string> StoreWatch::missing_objects() {
  std::set<metadata::ObjectId> there;
  for (const auto& [key, object] : store_.objects()) {
    auto id = object_of(key);
    if (id) there.insert(*id);
  }
  std::vector<std::string> missing;
  for (const auto& [id, epoch] : live_objects()) {
    if (!there.contains(id)) missing.push_back(fmt::format("{}/{}", id.incarnation, id.number));
  }
  return missing;
}

std::vector<std::string> StoreWatch::dead_objects() {
  std::vector<std::string> dead;
  for (const auto& [key, object] : store_.objects()) {
    if (foreign_.contains(key)) continue;
    auto id = object_of(key);
    bool is_wal = key.starts_with(key_prefix_ + "/_wal/");
    if (is_wal && (!id || !live_objects().contains(*id))) dead.push_back(key);
  }
  return dead;
}

}  // namespace varve::sim
