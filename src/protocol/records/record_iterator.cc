#include "protocol/records/record_iterator.h"

namespace varve::protocol::records {
namespace {

// Bytes with a length before them; -1 is null.
std::optional<ByteView> nullable(ByteReader& reader) {
  int32_t size = reader.varint32();
  if (size == -1) return std::nullopt;
  if (size < 0) {
    reader.fail();
    return std::nullopt;
  }
  return reader.raw(static_cast<size_t>(size));
}

HeaderView header(ByteReader& reader) {
  HeaderView view;
  auto key = nullable(reader);
  if (!key.has_value()) {
    reader.fail();
    return view;
  }
  view.key = as_text(*key);
  view.value = nullable(reader);
  return view;
}

// The record's bytes behind its length. False: they are no record.
bool parse(ByteView bytes, const BatchHeader& batch, RecordView& record) {
  ByteReader reader(bytes);
  reader.u8();  // attributes, unused
  int64_t timestamp_delta = reader.varint();
  int32_t offset_delta = reader.varint32();
  record.key = nullable(reader);
  record.value = nullable(reader);
  int32_t count = reader.varint32();
  if (!reader.ok() || count < 0) return false;
  ByteView headers = bytes.subspan(reader.position());
  for (int32_t i = 0; i < count && reader.ok(); ++i) header(reader);
  if (!reader.at_end()) return false;

  record.headers = HeadersView(headers, static_cast<size_t>(count));
  record.offset = batch.base_offset.plus(offset_delta);
  record.timestamp = batch.log_append_time()
                         ? batch.max_timestamp
                         : WallTime(static_cast<int64_t>(static_cast<uint64_t>(batch.base_timestamp.value()) +
                                                         static_cast<uint64_t>(timestamp_delta)));
  return true;
}

}  // namespace

HeadersView::Iterator::Iterator(ByteView bytes, size_t left) : reader_(bytes), left_(left) {
  if (left_ > 0) parse();
}

HeadersView::Iterator& HeadersView::Iterator::operator++() {
  --left_;
  if (left_ > 0) parse();
  return *this;
}

void HeadersView::Iterator::parse() { current_ = header(reader_); }

RecordIterator::RecordIterator(const BatchView& batch, DecodeScratch& scratch, size_t output_bytes_max)
    : header_(batch.header()) {
  if (header_.codec().has_value()) reader_.emplace(batch, scratch, output_bytes_max);
}

Result<std::optional<RecordView>, RecordError> RecordIterator::next() {
  if (!reader_.has_value()) return refuse(RecordErrc::kCodec, "unknown codec");
  if (header_.record_count < 0) return refuse(RecordErrc::kRecordCount, "negative record count");
  if (read_ == header_.record_count) {
    // An empty batch, which compaction and publication leave behind, has no bytes at all, compressed or not.
    if (header_.record_count == 0) return std::nullopt;
    if (!reader_->at_end()) reader_->fail(RecordErrc::kCorruptRecord, "bytes behind the last record");
    if (!reader_->ok()) return std::unexpected(reader_->error());
    return std::nullopt;
  }
  int32_t length = reader_->varint32();
  if (reader_->ok() && length < 0) reader_->fail(RecordErrc::kCorruptRecord, "negative record length");
  ByteView bytes = reader_->contiguous(static_cast<size_t>(length < 0 ? 0 : length));
  RecordView record;
  if (reader_->ok() && !parse(bytes, header_, record)) {
    reader_->fail(RecordErrc::kCorruptRecord, "a record whose parts do not fit it");
  }
  if (!reader_->ok()) return std::unexpected(reader_->error());
  ++read_;
  return record;
}

}  // namespace varve::protocol::records
