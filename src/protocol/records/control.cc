#include "protocol/records/control.h"

#include "protocol/records/builder.h"

namespace varve::protocol::records {
namespace {

constexpr int16_t kVersion = 0;
// A marker takes some tens of bytes; one of another kind may take a few more.
constexpr size_t kControlBytesMax = 64 * kKiB;

}  // namespace

std::vector<uint8_t> build_end_marker(const EndMarker& marker, Offset offset, int32_t partition_leader_epoch,
                                      WallTime timestamp) {
  ByteWriter key;
  key.be<int16_t>(kVersion);
  key.be<int16_t>(static_cast<int16_t>(marker.type));
  ByteWriter value;
  value.be<int16_t>(kVersion);
  value.be<int32_t>(marker.coordinator_epoch);

  BatchOptions options;
  options.base_offset = offset;
  options.partition_leader_epoch = partition_leader_epoch;
  options.producer_id = marker.producer_id;
  options.producer_epoch = marker.producer_epoch;
  options.transactional = true;
  options.control = true;
  BatchBuilder builder(options);
  builder.add({timestamp, key.view(), value.view()});
  return builder.build();
}

Result<std::optional<EndMarker>, RecordError> parse_end_marker(const BatchView& batch,
                                                               DecodeScratch& scratch) {
  if (!batch.header().control()) return refuse(RecordErrc::kControlBatch, "not a control batch");
  RecordIterator records(batch, scratch, kControlBytesMax);
  auto record = records.next();
  if (!record) return pass_error(record);
  if (!record->has_value()) return refuse(RecordErrc::kCorruptRecord, "a control batch without a record");
  ByteReader key((*record)->key.value_or(ByteView{}));
  int16_t version = key.be<int16_t>();
  int16_t type = key.be<int16_t>();
  if (!key.ok() || version < 0) return refuse(RecordErrc::kCorruptRecord, "bad key of a control record");
  if (type != static_cast<int16_t>(MarkerType::kAbort) && type != static_cast<int16_t>(MarkerType::kCommit)) {
    return std::nullopt;
  }
  ByteReader value((*record)->value.value_or(ByteView{}));
  value.be<int16_t>();  // newer versions only add fields behind
  EndMarker marker{static_cast<MarkerType>(type), batch.header().producer_id, batch.header().producer_epoch,
                   value.be<int32_t>()};
  if (!value.ok()) return refuse(RecordErrc::kCorruptRecord, "bad value of an end marker");
  return marker;
}

}  // namespace varve::protocol::records
