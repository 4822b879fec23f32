// Any bytes as what a producer sends or a store returns. What passes validation must be readable to its last record.
#include <algorithm>

#include "protocol/records/record_iterator.h"
#include "protocol/records/validate.h"

namespace varve::protocol::records {
namespace {

void read(const BatchView& batch, DecodeScratch& scratch, size_t limit, bool must_succeed) {
  RecordIterator iterator(batch, scratch, limit);
  int32_t records = 0;
  while (true) {
    auto record = iterator.next();
    if (!record) {
      CHECK(!must_succeed, "validated, but: {}", record.error().message);
      return;
    }
    if (!record->has_value()) break;
    ++records;
    for (const HeaderView& header : (*record)->headers) CHECK(header.key.size() <= limit);
    CHECK(!must_succeed || (*record)->offset == Offset(records - 1));
  }
  CHECK(records == batch.header().record_count);
}

void run(std::vector<uint8_t> bytes, bool mend) {
  static DecodeScratch scratch;
  const Limits limits = Limits::tiny();
  // Most mutations would stop at the checksum or the length; mending both lets them reach what is behind.
  if (mend && bytes.size() >= kBatchHeaderBytes) {
    store_be(bytes.data() + kBaseOffsetAt, int64_t{0});
    store_be(bytes.data() + kBatchLengthAt, static_cast<int32_t>(bytes.size() - kBatchOverheadBytes));
    bytes[kMagicAt] = static_cast<uint8_t>(kMagicV2);
    seal(bytes);
  }
  ProduceRules rules;
  rules.timestamp_after_ms_max = std::numeric_limits<int64_t>::max();
  auto produced = validate_produced(bytes, rules, limits, scratch);
  auto batch = BatchView::first_of(bytes);
  CHECK(batch.has_value() || !produced.has_value());
  if (!batch) return;
  size_t limit = limits.decompressed_bytes_max(batch->payload().size());
  read(*batch, scratch, limit, produced.has_value());
  if (produced.has_value()) {
    std::array<uint8_t, kBatchHeaderBytes> header;
    produced->header.encode(header);
    std::copy(header.begin(), header.end(), bytes.begin());
    CHECK(BatchView::first_of(bytes)->checksum_matches());
    stamp_log_append_time(bytes, WallTime(77));
    CHECK(BatchView::first_of(bytes)->checksum_matches());
  }
}

}  // namespace
}  // namespace varve::protocol::records

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  varve::protocol::records::run({data + 1, data + size}, (data[0] & 1) != 0);
  return 0;
}
