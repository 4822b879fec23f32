// The snapshots that lie in the simulated store, read at once and without its faults.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "sim/object_store.h"

namespace varve::sim {

// The chunks of a snapshot at `position` whose manifest and chunks are all in the store; nullopt if there is none. Two
// brokers may have written one at the same position, of which the log records the first.
std::optional<std::vector<Slice>> find_snapshot(const SimObjectStore& store, LogPosition position);

}  // namespace varve::sim
