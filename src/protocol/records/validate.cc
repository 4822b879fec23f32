#include "protocol/records/validate.h"

#include <algorithm>

#include "protocol/records/record_frame.h"

namespace varve::protocol::records {
namespace {

// What a producer may say; append time and delete horizon are the broker's, the rest has no meaning.
constexpr int16_t kProducersAttributes = kCodecMask | kTransactionalFlag;

// a - b without overflow.
int64_t saturating_difference(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) {
    return a < b ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
  return result;
}

bool timestamp_in_range(WallTime timestamp, const ProduceRules& rules) {
  if (timestamp == kNoTimestamp) return true;
  return saturating_difference(rules.now.value(), timestamp.value()) <= rules.timestamp_before_ms_max &&
         saturating_difference(timestamp.value(), rules.now.value()) <= rules.timestamp_after_ms_max;
}

std::optional<RecordError> error(RecordErrc code, std::string message) {
  return RecordError{code, std::move(message)};
}

// Exactly one batch, as the Produce API from version 3 on demands.
Result<BatchView, RecordError> only_batch(ByteView records, const ProduceRules& rules) {
  auto batch = BatchView::first_of(records);
  if (!batch) return batch;
  if (!rules.zstd_allowed && batch->header().codec() == Codec::kZstd) {
    return refuse(RecordErrc::kCodec, "zstd needs Produce version 7");
  }
  auto second = BatchView::first_of(records.subspan(batch->bytes().size()));
  if (second.has_value() || second.error().code == RecordErrc::kOldFormat) {
    return refuse(RecordErrc::kMoreThanOneBatch, "more than one record batch for one partition");
  }
  if (second.error().code != RecordErrc::kNoBatch) return second;
  return batch;
}

// What the header alone tells.
std::optional<RecordError> check_header(const BatchView& batch, const ProduceRules& rules,
                                        const Limits& limits) {
  const BatchHeader& header = batch.header();
  if (header.base_offset != Offset(0)) {
    return error(RecordErrc::kBaseOffset, fmt::format("base offset {} is not 0", header.base_offset));
  }
  if (batch.bytes().size() > rules.batch_bytes_max) {
    return error(RecordErrc::kBatchTooLarge, fmt::format("batch of {} bytes, at most {} are allowed",
                                                         batch.bytes().size(), rules.batch_bytes_max));
  }
  if (!batch.checksum_matches()) return error(RecordErrc::kCorruptChecksum, "CRC-32C does not match");
  if (header.record_count <= 0 || int64_t{header.last_offset_delta} + 1 != header.record_count) {
    return error(RecordErrc::kRecordCount, fmt::format("record count {} with last offset delta {}",
                                                       header.record_count, header.last_offset_delta));
  }
  if (static_cast<size_t>(header.record_count) > limits.records_per_batch_max) {
    return error(RecordErrc::kRecordCount, fmt::format("{} records in a batch, at most {} are allowed",
                                                       header.record_count, limits.records_per_batch_max));
  }
  if (header.control()) return error(RecordErrc::kControlBatch, "clients may not write control batches");
  if (header.has_producer() && header.base_sequence.value() < 0) {
    return error(RecordErrc::kSequence,
                 fmt::format("sequence {} with producer id {}", header.base_sequence, header.producer_id));
  }
  if (!header.codec().has_value()) {
    return error(RecordErrc::kCodec, fmt::format("unknown codec {}", header.attributes & kCodecMask));
  }
  return std::nullopt;
}

// Gathers what record by record is wrong.
class RecordChecks {
 public:
  RecordChecks(const BatchHeader& header, const ProduceRules& rules, const Limits& limits)
      : header_(header), rules_(rules), listed_max_(limits.record_errors_listed_max) {}

  // False: the batch's offsets are wrong, no need to go on.
  bool take(int32_t index, const RecordFrame& frame) {
    if (frame.offset_delta != index) {
      wrong_delta_at_ = index;
      return false;
    }
    WallTime timestamp = frame.timestamp(header_.base_timestamp);
    max_timestamp_ = std::max(max_timestamp_, timestamp);
    if (rules_.keys_required && !frame.has_key) {
      note(index, RecordErrc::kMissingKey);
    } else if (!timestamp_allowed(timestamp)) {
      note(index, RecordErrc::kTimestamp);
    }
    return true;
  }

  WallTime max_timestamp() const { return max_timestamp_; }

  std::optional<RecordError> error() {
    if (wrong_delta_at_.has_value()) {
      return RecordError{RecordErrc::kOffsetDelta,
                         fmt::format("offset of record {} is out of order", *wrong_delta_at_)};
    }
    if (bad_count_ == 0) return std::nullopt;
    return RecordError{
        any_timestamp_ ? RecordErrc::kTimestamp : RecordErrc::kMissingKey,
        any_timestamp_ ? fmt::format("{} records, the timestamp of one or more is not allowed", bad_count_)
                       : fmt::format("{} records without a key in a compacted topic", bad_count_),
        std::move(bad_)};
  }

 private:
  bool timestamp_allowed(WallTime timestamp) const {
    if (rules_.timestamp_type == TimestampType::kCreateTime) return timestamp_in_range(timestamp, rules_);
    return !header_.log_append_time();
  }
  void note(int32_t index, RecordErrc code) {
    ++bad_count_;
    any_timestamp_ = any_timestamp_ || code == RecordErrc::kTimestamp;
    if (bad_.size() < listed_max_) bad_.push_back({index, code});
  }

  const BatchHeader& header_;
  const ProduceRules& rules_;
  const size_t listed_max_;
  WallTime max_timestamp_ = kNoTimestamp;
  std::optional<int32_t> wrong_delta_at_;
  std::vector<BadRecord> bad_;
  size_t bad_count_ = 0;
  bool any_timestamp_ = false;
};

}  // namespace

Result<ProducedBatch, RecordError> validate_produced(ByteView records, const ProduceRules& rules,
                                                     const Limits& limits, DecodeScratch& scratch) {
  auto batch = only_batch(records, rules);
  if (!batch) return pass_error(batch);
  if (auto wrong = check_header(*batch, rules, limits)) return std::unexpected(std::move(*wrong));

  ProducedBatch produced{*batch, batch->header()};
  RecordChecks checks(batch->header(), rules, limits);
  size_t bytes_max =
      std::min(limits.decompressed_bytes_max(batch->payload().size()), rules.decompressed_bytes_max);
  auto wrong =
      for_each_frame(*batch, scratch, bytes_max, produced.uncompressed_bytes,
                     [&](int32_t index, const RecordFrame& frame) { return checks.take(index, frame); });
  if (!wrong) wrong = checks.error();
  if (wrong) return std::unexpected(std::move(*wrong));

  int16_t attributes = static_cast<int16_t>(produced.header.attributes & kProducersAttributes);
  if (attributes != produced.header.attributes || checks.max_timestamp() != produced.header.max_timestamp) {
    std::array<uint8_t, kBatchHeaderBytes> header;
    std::copy_n(batch->bytes().begin(), header.size(), header.begin());
    set_attributes_and_max_timestamp(header, attributes, checks.max_timestamp());
    produced.header = BatchHeader::decode(header);
    produced.repaired = true;
  }
  return produced;
}

}  // namespace varve::protocol::records
