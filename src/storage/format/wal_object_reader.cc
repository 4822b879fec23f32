#include <algorithm>

#include "base/crc32c.h"
#include "protocol/records/batch.h"
#include "storage/format/wal_object.h"

namespace varve::storage {
namespace {

using protocol::records::BatchView;

std::unexpected<FormatError> malformed(std::string message) {
  return fail(FormatErrc::kMalformed, std::move(message));
}

int64_t wrapping_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// A field that must fit T; fails the reader otherwise.
template <class T>
T bounded(ByteReader& in, uint64_t max) {
  uint64_t value = in.unsigned_varint();
  if (value > max) in.fail();
  return in.ok() ? static_cast<T>(value) : T{};
}

void read_producers(ByteReader& in, metadata::Run& run) {
  size_t count = in.count(kWalProducerBytesMin);
  if (count == 0) in.fail();
  if (!in.ok()) return;
  run.producers.reserve(count);
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    metadata::ProducerBatch batch;
    batch.bytes = bounded<uint32_t>(in, UINT32_MAX);
    batch.records = bounded<uint32_t>(in, UINT32_MAX);
    batch.producer_id = ProducerId(bounded<int64_t>(in, INT64_MAX));
    batch.epoch = ProducerEpoch(bounded<int16_t>(in, INT16_MAX));
    batch.first_sequence = Sequence(bounded<int32_t>(in, INT32_MAX));
    bytes += batch.bytes;
    records += batch.records;
    if (batch.bytes == 0 || batch.records == 0) in.fail();
    run.producers.push_back(batch);
  }
  if (bytes != run.bytes || records != run.records) in.fail();
}

struct DirectoryCursor {
  uint64_t handle = 0;
  uint64_t position = kWalHeaderBytes;
};

WalDirectoryRun read_run(ByteReader& in, const std::vector<Uuid>& topics, WallTime created,
                         uint64_t batches_end, DirectoryCursor& cursor) {
  WalDirectoryRun entry;
  metadata::Run& run = entry.run;
  cursor.handle += bounded<uint64_t>(in, UINT32_MAX - cursor.handle);
  run.partition = PartitionHandle(static_cast<uint32_t>(cursor.handle));
  uint64_t topic = in.unsigned_varint();
  if (topic < topics.size()) {
    entry.topic = topics[static_cast<size_t>(topic)];
  } else {
    in.fail();
  }
  entry.index = PartitionIndex(bounded<int32_t>(in, INT32_MAX));
  cursor.position += bounded<uint64_t>(in, batches_end - cursor.position);
  run.position = cursor.position;
  run.bytes = bounded<uint32_t>(in, std::min<uint64_t>(UINT32_MAX, batches_end - cursor.position));
  cursor.position += run.bytes;
  run.records = bounded<uint32_t>(in, UINT32_MAX);
  run.max_timestamp = wrapping_sum(in.varint(), created.value());
  uint8_t flags = in.u8();
  if (run.bytes < kRecordBatchHeaderBytes || run.records == 0 || (flags & ~kWalKnownRunFlags) != 0) in.fail();
  run.is_transactional = (flags & kWalTransactionalRun) != 0;
  run.is_log_append_time = (flags & kWalLogAppendTimeRun) != 0;
  if ((flags & kWalProducersRun) != 0) read_producers(in, run);
  return entry;
}

// One sentence if the batches of the run are not what the directory says, else empty.
std::string run_problem(ByteView bytes, const metadata::Run& run) {
  ByteView rest = bytes.subspan(run.position, run.bytes);
  uint64_t records = 0;
  size_t place = 0;
  for (; !rest.empty(); ++place) {
    uint64_t position = run.position + run.bytes - rest.size();
    auto batch = BatchView::first_of(rest);
    if (!batch) return fmt::format("no whole batch at {}: {}", position, batch.error().message);
    if (!batch->checksum_matches()) return fmt::format("the batch at {} fails its CRC", position);
    const auto& header = batch->header();
    if (header.record_count <= 0 || header.last_offset_delta != header.record_count - 1) {
      return fmt::format("the batch at {} has {} records and last offset delta {}", position,
                         header.record_count, header.last_offset_delta);
    }
    records += static_cast<uint32_t>(header.record_count);
    if (header.transactional() != run.is_transactional || header.has_producer() == run.producers.empty()) {
      return fmt::format("the batch at {} is not of the kind that the directory says", position);
    }
    if (header.has_producer()) {
      metadata::ProducerBatch seen{static_cast<uint32_t>(batch->bytes().size()),
                                   static_cast<uint32_t>(header.record_count), header.producer_id,
                                   header.producer_epoch, header.base_sequence};
      if (place >= run.producers.size() || seen != run.producers[place]) {
        return fmt::format("the batch at {} has another producer or sequence than the directory says",
                           position);
      }
    }
    rest = rest.subspan(batch->bytes().size());
  }
  if (records != run.records) {
    return fmt::format("{} records lie there, the directory says {}", records, run.records);
  }
  return {};
}

}  // namespace

Result<WalHeader, FormatError> parse_wal_header(ByteView bytes) {
  if (bytes.size() < kWalHeaderBytes) return fail(FormatErrc::kTooShort, "shorter than a header");
  ByteReader in(bytes.first(kWalHeaderBytes));
  if (in.be<uint64_t>() != kWalMagic) return fail(FormatErrc::kBadMagic, "does not start with the magic");
  uint16_t version = in.be<uint16_t>();
  if (version != kWalVersion) return fail(FormatErrc::kBadVersion, fmt::format("version {}", version));
  WalHeader header;
  header.shard = in.be<uint16_t>();
  ByteView log_id = in.raw(header.log_id.bytes.size());
  std::copy(log_id.begin(), log_id.end(), header.log_id.bytes.begin());
  header.nonce = Nonce(in.be<uint64_t>());
  header.object.incarnation = Incarnation(in.be<uint64_t>());
  header.object.number = ObjectNumber(in.be<uint64_t>());
  header.epoch = FenceEpoch(in.be<uint64_t>());
  header.created = WallTime(in.be<int64_t>());
  size_t covered = in.position();
  if (in.be<uint32_t>() != crc32c(bytes.first(covered))) {
    return fail(FormatErrc::kBadChecksum, "the header fails its checksum");
  }
  return header;
}

Result<WalTrailer, FormatError> parse_wal_trailer(ByteView bytes, uint64_t object_bytes) {
  if (bytes.size() != kWalTrailerBytes || object_bytes < kWalHeaderBytes + kWalTrailerBytes) {
    return fail(FormatErrc::kTooShort, "shorter than header and trailer");
  }
  ByteReader in(bytes);
  WalTrailer trailer;
  trailer.directory_position = in.be<uint64_t>();
  trailer.directory_bytes = in.be<uint32_t>();
  trailer.directory_crc = in.be<uint32_t>();
  if (in.be<uint64_t>() != kWalTrailerMagic)
    return fail(FormatErrc::kBadMagic, "does not end with the magic");
  uint64_t body_end = object_bytes - kWalTrailerBytes;
  if (trailer.directory_position < kWalHeaderBytes || trailer.directory_position > body_end ||
      trailer.directory_bytes != body_end - trailer.directory_position) {
    return malformed("the trailer names a directory that does not end where the trailer begins");
  }
  return trailer;
}

Result<WalDirectory, FormatError> parse_wal_directory(ByteView bytes, const WalTrailer& trailer,
                                                      const WalHeader& header) {
  if (bytes.size() != trailer.directory_bytes) return fail(FormatErrc::kTooShort, "the directory is cut");
  if (crc32c(bytes) != trailer.directory_crc) {
    return fail(FormatErrc::kBadChecksum, "the directory fails its checksum");
  }
  ByteReader in(bytes);
  WalDirectory directory;
  directory.applied = LogPosition(in.unsigned_varint());
  std::vector<Uuid> topics(in.count(sizeof(Uuid)));
  for (Uuid& topic : topics) {
    ByteView id = in.raw(topic.bytes.size());
    std::copy(id.begin(), id.end(), topic.bytes.begin());
  }
  size_t count = in.count(kWalRunBytesMin);
  directory.runs.reserve(count);
  DirectoryCursor cursor;
  for (size_t i = 0; i < count && in.ok(); ++i) {
    directory.runs.push_back(read_run(in, topics, header.created, trailer.directory_position, cursor));
    directory.runs.back().run.index = static_cast<uint32_t>(i);
  }
  if (!in.at_end()) return malformed("the directory contradicts itself");
  return directory;
}

Result<WalObject, FormatError> parse_wal_object(ByteView bytes) {
  auto header = parse_wal_header(bytes);
  if (!header) return pass_error(header);
  ByteView tail = bytes.size() < kWalTrailerBytes ? ByteView() : bytes.last(kWalTrailerBytes);
  auto trailer = parse_wal_trailer(tail, bytes.size());
  if (!trailer) return pass_error(trailer);
  ByteView body = bytes.subspan(trailer->directory_position, trailer->directory_bytes);
  auto directory = parse_wal_directory(body, *trailer, *header);
  if (!directory) return pass_error(directory);
  return WalObject{*header, std::move(*directory)};
}

std::vector<std::string> verify_wal_batches(ByteView bytes, const WalObject& object, size_t problems_max) {
  std::vector<std::string> problems;
  for (const WalDirectoryRun& entry : object.directory.runs) {
    if (problems.size() >= problems_max) break;
    const metadata::Run& run = entry.run;
    if (run.position > bytes.size() || run.bytes > bytes.size() - run.position) {
      problems.push_back(fmt::format("run {}: lies beyond the end of the object", run.index));
      continue;
    }
    std::string problem = run_problem(bytes, run);
    if (!problem.empty()) problems.push_back(fmt::format("run {}: {}", run.index, problem));
  }
  return problems;
}

}  // namespace varve::storage
