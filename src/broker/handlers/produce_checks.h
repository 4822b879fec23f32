// From the partitions of a Produce request to batches for ingest, or to the reason why not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "broker/handlers/services.h"
#include "metadata/client/image.h"
#include "protocol/messages/produce.h"
#include "protocol/records/payload_reader.h"
#include "storage/ingest/append.h"

namespace varve::broker {

struct CheckedBatch {
  storage::AppendBatch batch;
  uint32_t records = 0;
};

struct RefusedBatch {
  protocol::ErrorCode code;
  std::string message;
  std::vector<protocol::ProduceResponse::BatchIndexAndErrorMessage> record_errors;
};

// `records` is what the request has for the partition; the batch that comes out shares its bytes, unless its header
// had to be repaired. Reads every byte, decompressing in a window.
Result<CheckedBatch, RefusedBatch> check_batch(const metadata::TopicView& topic, PartitionIndex partition,
                                               const std::optional<protocol::SliceChain>& records,
                                               int16_t version, const Limits& limits, WallTime now,
                                               protocol::records::DecodeScratch& scratch);

// Whether the first batch says that it is transactional.
bool is_transactional(const std::optional<protocol::SliceChain>& records);

}  // namespace varve::broker
