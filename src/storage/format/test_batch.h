// Record batches for tests of the write and read paths.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "protocol/records/batch.h"

namespace varve::storage {

struct TestBatch {
  std::vector<int64_t> timestamps = {1'000};  // one record each
  size_t value_bytes = 10;                    // of every record
  char fill = 'v';
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  Sequence first_sequence = kNoSequence;
  bool is_transactional = false;
};

// An uncompressed batch with base offset 0, null keys, and a value of `value_bytes` times `fill` a record.
inline Slice make_batch(const TestBatch& options) {
  namespace records = protocol::records;
  ByteWriter body;
  int64_t base_timestamp = options.timestamps.front();
  int64_t max_timestamp = base_timestamp;
  for (size_t i = 0; i < options.timestamps.size(); ++i) {
    ByteWriter record;
    record.u8(0);
    record.varint(options.timestamps[i] - base_timestamp);
    record.varint(static_cast<int64_t>(i));
    record.varint(-1);
    record.varint(static_cast<int64_t>(options.value_bytes));
    record.raw(as_bytes(std::string(options.value_bytes, options.fill)));
    record.varint(0);
    body.varint(static_cast<int64_t>(record.size()));
    body.raw(record.view());
    max_timestamp = std::max(max_timestamp, options.timestamps[i]);
  }
  records::BatchHeader header;
  header.batch_length =
      static_cast<int32_t>(records::kBatchHeaderBytes - records::kBatchOverheadBytes + body.size());
  header.attributes = options.is_transactional ? records::kTransactionalFlag : int16_t{0};
  header.last_offset_delta = static_cast<int32_t>(options.timestamps.size()) - 1;
  header.base_timestamp = WallTime(base_timestamp);
  header.max_timestamp = WallTime(max_timestamp);
  header.producer_id = options.producer_id;
  header.producer_epoch = options.producer_epoch;
  header.base_sequence = options.first_sequence;
  header.record_count = static_cast<int32_t>(options.timestamps.size());
  std::vector<uint8_t> bytes(records::kBatchHeaderBytes);
  header.encode(bytes);
  bytes.insert(bytes.end(), body.view().begin(), body.view().end());
  records::seal(bytes);
  return Slice::take(std::move(bytes));
}

}  // namespace varve::storage
