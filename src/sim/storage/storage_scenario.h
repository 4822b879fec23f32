// The storage scenario: write path, read path and garbage collection of three brokers, below the Kafka protocol.
#pragma once

#include <array>

#include "sim/scenario.h"

namespace varve::sim {

// Idempotent producers send windows of batches, switch brokers in mid-sequence and repeat what was not acknowledged;
// others send windows once; consumers read what was acknowledged, through any broker; topics come and go. Limits
// are tiny. Nothing acknowledged may vanish, move or come twice, chains keep their order, a broker stays in its
// memory budget, every dead object disappears, and foreign ones never do.
Outcome run_storage(const RunOptions& options);

inline constexpr std::array<std::string_view, 13> kStorageExpected = {
    "collector.deleted_objects",  "collector.swept_orphans", "fetch.corrupt_read",
    "ingest.early_acknowledged",  "ingest.held_batch",       "ingest.object_fenced",
    "ingest.upload_failed",       "produce.duplicate",       "produce.out_of_order",
    "produce.predecessor_failed", "produce.store_failed",    "produce.too_many_waiting",
    "produce.unknown_partition",
};

}  // namespace varve::sim
