// StateSamples: states of brokers at equal positions are equal (invariant 2), and a snapshot says what the log says.
#pragma once

#include <map>
#include <string>

#include "metadata/state/state.h"
#include "sim/metadata_log.h"
#include "sim/object_store.h"
#include "sim/scenario.h"

namespace varve::sim {

// Life: for one run.
class StateSamples {
 public:
  explicit StateSamples(Findings& findings) : findings_(findings) {}

  // What `host` has now.
  void take(const std::string& host, const metadata::State& state);

  // At the end: replaying the whole log gives every state that was sampled. Returns the state at the tail.
  metadata::State check_replay(const SimMetadataLog& log, PlantedBugs bugs);
  // Each snapshot that `at_tail` retains, followed by the log behind it, gives `at_tail`.
  void check_snapshots(const SimMetadataLog& log, const SimObjectStore& store, const metadata::State& at_tail,
                       PlantedBugs bugs);

 private:
  struct Sample {
    uint64_t hash = 0;
    std::string host;
  };

  Findings& findings_;
  std::map<LogPosition, Sample> samples_;
};

}  // namespace varve::sim
