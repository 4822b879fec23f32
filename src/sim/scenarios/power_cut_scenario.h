// The scenario `power_cut`: a whole broker on its own disk, whose power fails at random file operations.
#pragma once

#include <array>
#include <string_view>

#include "sim/scenario.h"

namespace varve::sim {

inline constexpr uint64_t kPowerCutsPerRun = 5;

// One broker on the folder store and the SQLite log, as `varve broker` has them, over SimFileSystem, with the workload
// of sim/workload/. Power cuts at random changing file operations, of serving and of starting brokers, drop, tear and
// reorder what was not synced. The last cut comes when everything is settled; then all is read and checked.
Outcome run_power_cuts(const RunOptions& options);
// The same on a disk that does nothing for one sync in twenty, which must show.
Outcome run_power_cuts_on_lying_disk(const RunOptions& options);

inline constexpr std::array<std::string_view, 9> kPowerCutExpected = {
    "client.epoch_bumped", "disk.bytes_lost",         "disk.bytes_torn",
    "disk.entries_lost",   "file.read_fails",         "file.sync_fails",
    "node.power_cut",      "power_cut.while_serving", "power_cut.while_starting",
};

}  // namespace varve::sim
