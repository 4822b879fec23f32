#include "sim/workload/batch_maker.h"

#include "base/random.h"
#include "protocol/records/builder.h"

namespace varve::sim {

Slice make_sim_batch(const BatchShape& shape) {
  protocol::records::BatchBuilder builder({.codec = shape.codec,
                                           .producer_id = shape.producer_id,
                                           .producer_epoch = shape.epoch,
                                           .base_sequence = shape.first_sequence,
                                           .transactional = shape.is_transactional});
  Random random(shape.number);
  std::vector<uint8_t> value(std::max<size_t>(shape.value_bytes, sizeof(uint64_t)));
  for (uint32_t i = 0; i < shape.records; ++i) {
    store_be(value.data(), shape.number);
    for (size_t at = sizeof(uint64_t); at < value.size(); ++at)
      value[at] = static_cast<uint8_t>(random.below(16));
    protocol::records::NewRecord record;
    record.timestamp = shape.timestamp.plus(i);
    if (i % 3 == 1) record.key = ByteView(value).first(sizeof(uint64_t));
    record.value = ByteView(value);
    builder.add(record);
  }
  return Slice::take(builder.build());
}

}  // namespace varve::sim
