// BrokerGround: what a simulated broker stands on: a log and a store shared by all, or its own disk.
#pragma once

#include <memory>
#include <string>

#include "base/limits.h"
#include "base/result.h"
#include "metadata/log/metadata_log.h"
#include "object_store/object_store.h"
#include "runtime/task.h"
#include "sim/metadata_log.h"
#include "sim/node.h"
#include "sim/object_store.h"

namespace varve::sim {

// Life: made for one process, before the broker on it; destroyed after the broker.
class BrokerGround {
 public:
  virtual ~BrokerGround() = default;

  // Once, before the broker starts.
  virtual runtime::Task<Result<void, std::string>> open() = 0;
  virtual metadata::MetadataLog& log() = 0;
  virtual object_store::ObjectStore& store() = 0;
};

// The process's clients of the simulated log and store.
std::unique_ptr<BrokerGround> make_shared_ground(Process& process, SimMetadataLog& log,
                                                 SimObjectStore& store);
// The SQLite log and the folder store on the process's own disk, as the program `varve broker` has them. The ballast
// is small by default, as every start of a process writes it.
std::unique_ptr<BrokerGround> make_disk_ground(Process& process, std::string key_namespace,
                                               uint64_t ballast_bytes = 64 * kKiB);

}  // namespace varve::sim
