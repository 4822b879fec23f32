// The smallest scenario that uses every seam; it proves the simulator rather than the broker.
#pragma once

#include <array>

#include "sim/scenario.h"

namespace varve::sim {

// Nodes race to claim keys of the store by put_if_absent. A claim that was won is entered into the metadata log,
// noted in a synced local file and told to an observer over the network. No key may have two winners, nothing
// entered, noted or told may vanish or be made up, and once faults stop everybody finishes.
// Planted bug: ack_after_reject takes a refused claim for a won one.
Outcome run_toy(const RunOptions& options);

inline constexpr std::array<std::string_view, 30> kToyExpected = {
    "file.sync_fails",
    "file.sync_folder_fails",
    "file.write_fails",
    "log.append.already_there",
    "log.append.lands_late",
    "log.append.reply_lost",
    "log.append.request_lost",
    "log.append.session_gone",
    "log.session.expired_alive",
    "log.session.lease_lost",
    "nemesis.kill_all",
    "nemesis.power_cut_in_disk_call",
    "nemesis.service_down",
    "nemesis.service_partition",
    "network.clog",
    "network.cut",
    "network.isolated",
    "network.partition",
    "node.clock_jumps_back",
    "node.killed",
    "node.paused",
    "node.power_cut",
    "store.get.corrupt",
    "store.put.already_there_same",
    "store.put.conflict",
    "store.put.lands_late",
    "store.put.reply_lost",
    "store.put.request_lost",
    "store.put.slow",
    "store.put.throttled",
};

}  // namespace varve::sim
