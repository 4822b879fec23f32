// StoreWatch: looks at every write and deletion in the object store as it takes effect (invariants 6, 7, 8).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "metadata/state/object_key.h"
#include "sim/checkers/log_audit.h"
#include "sim/object_store.h"
#include "sim/scenario.h"

namespace varve::sim {

// Life: made with the store, before the first broker; takes the store's observer.
class StoreWatch {
 public:
  StoreWatch(World& world, SimObjectStore& store, LogAudit& audit, std::string key_prefix,
             Findings& findings);

  // Keys of objects that the log refers to and that are not in the store; and WAL objects in the store that neither
  // the log nor a foreign process has any use for. At the end both are empty, given time.
  std::vector<std::string> missing_objects();
  std::vector<std::string> dead_objects();

 private:
  void on_event(const StoreEvent& event);
  void on_put(const StoreEvent& event);
  void on_delete(const StoreEvent& event);
  void check_wal_deletion(const StoreEvent& event, const metadata::WalObjectName& name);
  void check_snapshot_deletion(const StoreEvent& event);
  // nullopt: no WAL object, or of a nonce that the log never registered.
  std::optional<metadata::ObjectId> object_of(const std::string& key);
  // What some partition's runs lie in, by the log up to its tail.
  const std::map<metadata::ObjectId, FenceEpoch>& live_objects();

  World& world_;
  SimObjectStore& store_;
  LogAudit& audit_;
  const std::string key_prefix_;
  Findings& findings_;
  std::set<std::string> foreign_;
  std::map<metadata::ObjectId, FenceEpoch> live_;
  LogPosition live_at_;
  std::map<std::string, MonotonicTime> deleted_;
};

}  // namespace varve::sim
