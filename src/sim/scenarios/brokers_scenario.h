// The scenario `brokers`: whole brokers with clients that speak Kafka, under every fault.
#pragma once

#include <array>

#include "sim/scenario.h"

namespace varve::sim {

// Three brokers on one simulated log and store; at least three producers, one of which keeps changing its broker in
// mid-sequence; consumers; topics that are deleted and made again. After the faults everything has to finish, and the
// checkers of sim/checkers/ look at what was promised, what is there and what the log says.
Outcome run_brokers(const RunOptions& options);

inline constexpr std::array<std::string_view, 1> kBrokersExpected = {
    "node.killed",
};

}  // namespace varve::sim
