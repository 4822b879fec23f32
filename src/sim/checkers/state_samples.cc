#include "sim/checkers/state_samples.h"

#include "sim/checkers/snapshot_objects.h"

namespace varve::sim {

using metadata::State;

void StateSamples::take(const std::string& host, const State& state) {
  auto [known, is_new] = samples_.try_emplace(state.position(), Sample{state.hash(), host});
  if (is_new) return;
  findings_.require(known->second.hash == state.hash(), "the states of {} and {} differ at log position {}",
                    known->second.host, host, state.position());
}

State StateSamples::check_replay(const SimMetadataLog& log, PlantedBugs bugs) {
  State state(bugs);
  for (const SimMetadataLog::Record& record : log.records()) {
    state.apply(record.position, record.bytes.view());
    auto sample = samples_.find(record.position);
    if (sample == samples_.end()) continue;
    findings_.require(sample->second.hash == state.hash(),
                      "the state of {} at log position {} is not what replaying the log gives",
                      sample->second.host, record.position);
  }
  return state;
}

void StateSamples::check_snapshots(const SimMetadataLog& log, const SimObjectStore& store,
                                   const State& at_tail, PlantedBugs bugs) {
  for (const metadata::RetainedSnapshot& snapshot : at_tail.snapshots()) {
    LogPosition position = snapshot.position;
    auto chunks = find_snapshot(store, position);
    if (!chunks) {
      findings_.add(fmt::format("the retained snapshot at {} is not whole in the store", position));
      return;
    }
    auto state = State::from_chunks(*chunks, bugs);
    if (!state) {
      findings_.add(fmt::format("the snapshot at {} cannot be loaded: {}", position, state.error().message));
      return;
    }
    for (const SimMetadataLog::Record& record : log.records()) {
      if (record.position > position) state->apply(record.position, record.bytes.view());
    }
    findings_.require(state->hash() == at_tail.hash(),
                      "the snapshot at {} and the log behind it give another state than the whole log",
                      position);
  }
}

}  // namespace varve::sim
