// GarbageCollector: deletes objects that nothing refers to any more, and sweeps the bucket for uploads that were
// never committed. What may go is decided by rule, never by a clock (invariants 6 and 7): the times below only say
// how often to look.
#pragma once

#include <memory>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/planted_bugs.h"
#include "metadata/client/metadata_client.h"
#include "object_store/object_store.h"
#include "runtime/runtime.h"

namespace varve::storage {

struct GarbageCollectorConfig {
  std::string key_prefix{};         // the namespace
  BrokerId broker{};                // this one
  Duration look_interval = 10s;     // for objects that may be deleted
  Duration fence_interval = 5min;   // an advance costs the uploads under way a second PUT
  Duration sweep_interval = 60min;  // between the ends and beginnings of two LISTs of all WAL objects
  size_t keys_per_request = 1000;   // of LIST and DELETE, at most 1,000
};

// One live broker does it, the one with the lowest id; two at once do no harm. Life: made after the metadata client
// has started, start(), co_await stop() before the client stops, destroy. Owned by the broker.
class GarbageCollector {
 public:
  GarbageCollector(runtime::Runtime& runtime, metadata::MetadataClient& client,
                   object_store::ObjectStore& store, GarbageCollectorConfig config, Logger logger,
                   MetricRegistry& metrics, PlantedBugs bugs = {});
  ~GarbageCollector();
  GarbageCollector(const GarbageCollector&) = delete;
  GarbageCollector& operator=(const GarbageCollector&) = delete;

  // Any executor, once: works from now on, on an io executor.
  void start();
  // Any io task, once.
  runtime::Task<> stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::storage
