#include "storage/format/wal_object.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace varve::storage {
namespace {

// Differences of timestamps wrap, so that any two int64 have one.
int64_t wrapping_difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
void write_header(uint8_t* to, const WalHeader& header) {
  store_be(to, kWalMagic);
  store_be(to + 8, kWalVersion);
  store_be(to + 10, header.shard);
  std::memcpy(to + 12, header.log_id.bytes.data(), 16);
  store_be(to + 28, header.nonce.value());
  store_be(to + 36, header.object.incarnation.value());
  store_be(to + 44, header.object.number.value());
  store_be(to + 52, header.epoch.value());
  store_be(to + 60, header.created.value());
  store_be(to + 68, crc32c({to, 68}));
}

metadata::Run summarize(const WalRun& from, uint32_t index, uint64_t position) {
  metadata::Run run;
  run.index = index;
  run.partition = from.partition;
  run.position = position;
  run.is_transactional = from.is_transactional;
  run.is_log_append_time = from.is_log_append_time;
  bool has_producers = from.batches.front().producer_id != kNoProducerId;
  if (has_producers) run.producers.reserve(from.batches.size());
  uint64_t bytes = 0;
  for (const WalBatch& batch : from.batches) {
    bytes += batch.bytes.size();
    run.records += batch.records;
    run.max_timestamp = std::max(run.max_timestamp, batch.max_timestamp);
    CHECK((batch.producer_id != kNoProducerId) == has_producers,
          "a run mixes batches with and without producer id");
    if (has_producers) {
      run.producers.push_back({static_cast<uint32_t>(batch.bytes.size()), batch.records, batch.producer_id,
                               batch.producer_epoch, batch.first_sequence});
    }
  }
  CHECK(bytes <= UINT32_MAX, "a run of {} bytes", bytes);
  run.bytes = static_cast<uint32_t>(bytes);
  return run;
}

void write_run(ByteWriter& out, const metadata::Run& run, uint64_t handle_step, size_t topic_place,
               PartitionIndex index, uint64_t gap, WallTime created) {
  out.unsigned_varint(handle_step);
  out.unsigned_varint(topic_place);
  out.unsigned_varint(static_cast<uint32_t>(index.value()));
  out.unsigned_varint(gap);
  out.unsigned_varint(run.bytes);
  out.unsigned_varint(run.records);
  out.varint(wrapping_difference(run.max_timestamp, created.value()));
  out.u8(static_cast<uint8_t>((run.is_transactional ? kWalTransactionalRun : 0) |
                              (run.is_log_append_time ? kWalLogAppendTimeRun : 0) |
                              (run.producers.empty() ? 0 : kWalProducersRun)));
  if (run.producers.empty()) return;
  out.unsigned_varint(run.producers.size());
  for (const metadata::ProducerBatch& batch : run.producers) {
    out.unsigned_varint(batch.bytes);
    out.unsigned_varint(batch.records);
    out.unsigned_varint(static_cast<uint64_t>(batch.producer_id.value()));
    out.unsigned_varint(static_cast<uint16_t>(batch.epoch.value()));
    out.unsigned_varint(static_cast<uint32_t>(batch.first_sequence.value()));
  }
}

std::vector<uint8_t> write_directory(const WalHeader& header, LogPosition applied,
                                     const std::vector<std::shared_ptr<const WalRun>>& runs,
                                     const std::vector<metadata::Run>& summaries, uint64_t end_of_batches) {
  // Runs of one topic mostly stand together, so the last place is tried first.
  std::vector<Uuid> topics;
  std::vector<size_t> places;
  places.reserve(runs.size());
  for (const auto& run : runs) {
    auto known = topics.empty() || topics.back() != run->topic
                     ? std::find(topics.begin(), topics.end(), run->topic)
                     : topics.end() - 1;
    places.push_back(static_cast<size_t>(known - topics.begin()));
    if (known == topics.end()) topics.push_back(run->topic);
  }
  ByteWriter out(64 + topics.size() * 16 + runs.size() * 24);
  out.unsigned_varint(applied.value());
  out.unsigned_varint(topics.size());
  for (const Uuid& topic : topics) out.raw(topic.bytes);
  out.unsigned_varint(runs.size());
  uint64_t last_handle = 0;
  uint64_t expected_position = kWalHeaderBytes;
  for (size_t i = 0; i < runs.size(); ++i) {
    const metadata::Run& run = summaries[i];
    CHECK(run.partition.value() >= last_handle, "runs are not in the order of their partitions");
    write_run(out, run, run.partition.value() - last_handle, places[i], runs[i]->index,
              run.position - expected_position, header.created);
    last_handle = run.partition.value();
    expected_position = run.position + run.bytes;
  }
  size_t directory_bytes = out.size();
  uint32_t directory_crc = crc32c(out.view());
  out.be(end_of_batches);
  out.be(static_cast<uint32_t>(directory_bytes));
  out.be(directory_crc);
  out.be(kWalTrailerMagic);
  return out.take();
}

// Lays the header and all copied batches into one buffer of exactly their size and cuts it where a referenced
// batch comes between.
class SliceList {
 public:
  explicit SliceList(size_t owned_bytes)
      : owner_(std::make_shared_for_overwrite<uint8_t[]>(owned_bytes)), owned_bytes_(owned_bytes) {}

  uint8_t* extend(size_t size) {
    CHECK(size <= owned_bytes_ - used_);
    uint8_t* at = owner_.get() + used_;
    used_ += size;
    return at;
  }
  void reference(const Slice& slice) {
    cut();
    slices_.push_back(slice);
  }
  std::vector<Slice> finish() {
    cut();
    return std::move(slices_);
  }

 private:
  void cut() {
    if (used_ == cut_) return;
    slices_.emplace_back(owner_, ByteView(owner_.get() + cut_, used_ - cut_));
    cut_ = used_;
  }

  std::shared_ptr<uint8_t[]> owner_;
  size_t owned_bytes_;
  size_t used_ = 0;
  size_t cut_ = 0;
  std::vector<Slice> slices_;
};

}  // namespace

BuiltObject build_wal_object(const WalHeader& header, LogPosition applied,
                             const std::vector<std::shared_ptr<const WalRun>>& runs) {
  BuiltObject built;
  built.runs.reserve(runs.size());
  uint64_t position = kWalHeaderBytes;
  size_t owned_bytes = kWalHeaderBytes;
  for (const auto& run : runs) {
    CHECK(!run->batches.empty(), "a run without batches");
    built.runs.push_back(summarize(*run, static_cast<uint32_t>(built.runs.size()), position));
    position += built.runs.back().bytes;
    for (const WalBatch& batch : run->batches) {
      if (batch.is_copied) owned_bytes += batch.bytes.size();
    }
  }
  SliceList list(owned_bytes);
  write_header(list.extend(kWalHeaderBytes), header);
  for (const auto& run : runs) {
    for (const WalBatch& batch : run->batches) {
      if (batch.is_copied) {
        std::memcpy(list.extend(batch.bytes.size()), batch.bytes.data(), batch.bytes.size());
      } else {
        list.reference(batch.bytes);
      }
    }
  }
  built.slices = list.finish();
  built.slices.push_back(Slice::take(write_directory(header, applied, runs, built.runs, position)));
  for (const Slice& slice : built.slices) {
    built.bytes += slice.size();
    built.crc = crc32c_extend(built.crc, slice.view());
  }
  return built;
}

}  // namespace varve::storage
