// Control batches: the markers that end a transaction in a partition (KIP-98). Only brokers write them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "protocol/records/batch.h"
#include "protocol/records/payload_reader.h"

namespace varve::protocol::records {

// Kafka's ControlRecordType; types above these belong to KRaft and to nobody's partitions here.
enum class MarkerType : int16_t { kAbort = 0, kCommit = 1 };

struct EndMarker {
  MarkerType type = MarkerType::kAbort;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  int32_t coordinator_epoch = 0;

  bool operator==(const EndMarker&) const = default;
};

// One record at `offset`, transactional, uncompressed.
std::vector<uint8_t> build_end_marker(const EndMarker& marker, Offset offset, int32_t partition_leader_epoch,
                                      WallTime timestamp);

// The marker in a control batch; nullopt: a control record of another type. Errors as
// RecordIterator's, kControlBatch if it is no control batch, kCorruptRecord if key or value are too short.
Result<std::optional<EndMarker>, RecordError> parse_end_marker(const BatchView& batch,
                                                               DecodeScratch& scratch);

}  // namespace varve::protocol::records
