// Makes the records of the workload: unlike any other's, and the same again for the same number.
#pragma once

#include "client/producer.h"

namespace varve::sim {

// Its value begins with `number` and has at least 8 bytes.
client::NewRecord make_sim_record(uint64_t number, size_t value_bytes, WallTime timestamp);

}  // namespace varve::sim
