// Makes the record batches of the workload: unlike any other's, and the same again for the same number.
#pragma once

#include "base/bytes.h"
#include "base/compression.h"
#include "base/ids.h"
#include "base/time.h"

namespace varve::sim {

struct BatchShape {
  uint64_t number = 0;  // begins each record's value
  uint32_t records = 1;
  uint32_t value_bytes = 16;  // of a record, at least 8
  Codec codec = Codec::kNone;
  WallTime timestamp;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch epoch = kNoProducerEpoch;
  Sequence first_sequence = kNoSequence;
  bool is_transactional = false;
};

Slice make_sim_batch(const BatchShape& shape);

}  // namespace varve::sim
