#include <algorithm>
#include <bit>

#include "base/crc32c.h"
#include "base/hash.h"
#include "metadata/state/chunk_codec.h"
#include "metadata/state/group_codec.h"

namespace varve::metadata {
namespace {

// Of any record: one run of as many records as a run can have may go beyond kHighWatermarkMax.
constexpr int64_t kEndOffsetMax = kHighWatermarkMax + UINT32_MAX;
// The least each item takes, so that a count can be checked against the bytes that are there.
constexpr size_t kRunBytesMin = 3;
constexpr size_t kBrokerBytesMin = 8;
constexpr size_t kProducerBytesMin = 7;
constexpr size_t kBatchBytesMin = 3;

int64_t sum(int64_t base, int64_t delta) {
  return static_cast<int64_t>(static_cast<uint64_t>(base) + static_cast<uint64_t>(delta));
}

// Decodes the body of one chunk into the state. Any contradiction makes the reader fail.
class ChunkDecoder {
 public:
  ChunkDecoder(StateData& state, const ChunkKey& key, ByteReader& in) : state_(state), key_(key), in_(in) {}

  void body() {
    switch (key_.kind) {
      case ChunkKind::kGeneral:
        return general();
      case ChunkKind::kBrokers:
        return brokers();
      case ChunkKind::kObjects:
        return objects();
      case ChunkKind::kPartitions:
        return partitions();
      case ChunkKind::kHistory:
        return history();
      case ChunkKind::kGroups:
        return groups();
    }
    in_.fail();
  }

  uint64_t other_chunks() const { return other_chunks_; }

 private:
  void require(bool holds) {
    if (!holds) in_.fail();
  }
  std::string text() { return read_text(in_); }
  int64_t non_negative() {
    uint64_t value = in_.unsigned_varint();
    require(value <= INT64_MAX);
    return static_cast<int64_t>(value & INT64_MAX);
  }

  void general() {
    other_chunks_ = in_.unsigned_varint();
    state_.position = LogPosition(in_.unsigned_varint());
    state_.feature_level = FeatureLevel(in_.unsigned_varint32());
    state_.log_time = in_.varint();
    state_.fence_epoch = FenceEpoch(in_.unsigned_varint());
    state_.limits.producer_batches_kept = in_.unsigned_varint32();
    state_.limits.partitions_max = in_.unsigned_varint32();
    state_.limits.producer_expiry_ms = in_.unsigned_varint();
    state_.partitions.restore_next_handle(PartitionHandle(in_.unsigned_varint32()));
    state_.next_producer_id = non_negative();
    state_.producer_ids_at_expiry = non_negative();
    state_.image_version = in_.unsigned_varint();
    size_t snapshots = in_.count(10);
    require(snapshots <= kSnapshotsRetained && state_.log_time >= 0);
    for (size_t i = 0; i < snapshots && in_.ok(); ++i) {
      LogPosition position(in_.unsigned_varint());
      require(i == 0 || position > state_.snapshots.back().position);
      uint64_t state_hash = in_.be<uint64_t>();
      state_.snapshots.push_back({position, state_hash, in_.unsigned_varint()});
    }
    if (in_.remaining() > 0) {
      state_.group_limits.offsets_retention_ms = in_.unsigned_varint();
      state_.groups.restore_newest_version(in_.unsigned_varint());
      require(has_group_fields(state_));
    }
    require(are_in_range(state_.limits) && are_in_range(state_.group_limits));
  }

  void brokers() {
    size_t count = in_.count(kBrokerBytesMin);
    uint64_t incarnation = 0;
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      uint64_t step = in_.unsigned_varint();
      require(step > 0 && step <= state_.position.value() - incarnation);
      incarnation += step;
      BrokerIncarnation broker;
      broker.nonce = Nonce(in_.be<uint64_t>());
      uint32_t id = in_.unsigned_varint32();
      require(id <= INT32_MAX);
      broker.broker = BrokerId(static_cast<int32_t>(id));
      broker.last_sequence = EntrySequence(in_.unsigned_varint());
      broker.highest_level = FeatureLevel(in_.unsigned_varint32());
      broker.last_time = WallTime(in_.varint());
      broker.beat_position = LogPosition(in_.unsigned_varint());
      broker.beat_hash = in_.be<uint64_t>();
      uint8_t is_live = in_.u8();
      require(is_live <= 1);
      broker.is_live = is_live != 0;
      if (broker.is_live) reachable(broker);
      if (in_.ok()) require(state_.brokers.restore(Incarnation(incarnation), std::move(broker)));
    }
  }

  void reachable(BrokerIncarnation& broker) {
    broker.endpoints.resize(in_.count(4));
    for (Endpoint& endpoint : broker.endpoints) {
      endpoint.listener = text();
      endpoint.host = text();
      endpoint.port = in_.be<uint16_t>();
    }
    broker.rack = text();
  }

  void objects() {
    size_t count = in_.count(10);
    require(count > 0 && state_.brokers.find(Incarnation(key_.first)) != nullptr &&
            key_.second <= UINT64_MAX / kObjectsPerChunk);
    uint64_t first = key_.second * kObjectsPerChunk;
    uint64_t place = 0;
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      uint64_t step = in_.unsigned_varint();
      require(step < kObjectsPerChunk && (i == 0 || step > 0));
      place += step;
      require(place < kObjectsPerChunk && first + place > 0);
      Object object;
      object.id = {Incarnation(key_.first), ObjectNumber(first + place)};
      read(object);
      if (in_.ok()) require(state_.objects.restore(std::move(object)));
    }
  }

  void read(Object& o) {
    uint8_t flags = in_.u8();
    require((flags & ~kKnownObjectFlags) == 0);
    o.may_have_readers = (flags & kMayHaveReaders) != 0;
    o.needs_grace = (flags & kNeedsGrace) != 0;
    o.epoch = FenceEpoch(in_.unsigned_varint());
    o.bytes = in_.unsigned_varint();
    o.crc = in_.be<uint32_t>();
    o.run_count = in_.unsigned_varint32();
    o.resolved = in_.unsigned_varint32();
    require(o.bytes < kObjectBytesMax && o.run_count <= kRunsPerObjectMax && o.resolved > 0 &&
            o.resolved <= o.run_count && o.epoch <= state_.fence_epoch);
    if (flags & kPending) {
      o.dereferenced.position = LogPosition(in_.unsigned_varint());
      o.dereferenced.log_time = in_.varint();
      require(o.dereferenced.position > LogPosition() && o.dereferenced.position <= state_.position);
      require(o.dereferenced.log_time >= 0 && o.dereferenced.log_time <= state_.log_time);
    } else {
      require(!o.needs_grace);
    }
    if (o.resolved != o.run_count) resolved_bits(o);
  }

  void resolved_bits(Object& o) {
    size_t words = in_.count(sizeof(uint64_t));
    require(words > 0 && words <= (o.run_count + 63) / 64);
    if (!in_.ok()) return;
    o.resolved_bits.resize(words);
    uint32_t ones = 0;
    for (uint64_t& word : o.resolved_bits) {
      word = in_.be<uint64_t>();
      ones += static_cast<uint32_t>(std::popcount(word));
    }
    require(ones == o.resolved && o.resolved_bits.back() != 0);
    size_t last_bit = words * 64 - static_cast<size_t>(std::countl_zero(o.resolved_bits.back())) - 1;
    require(last_bit < o.run_count);
  }

  // The handle at a place of this block; fails beyond those that were given.
  PartitionHandle handle_at(uint64_t place) {
    uint64_t handle = key_.first * kPartitionsPerBlock + place;
    require(place < kPartitionsPerBlock && key_.first <= UINT32_MAX / kPartitionsPerBlock &&
            handle < state_.partitions.next_handle().value());
    return PartitionHandle(static_cast<uint32_t>(handle));
  }

  void partitions() {
    size_t topics = in_.count(4);
    for (size_t i = 0; i < topics && in_.ok(); ++i) topic();
    uint64_t next_page = in_.unsigned_varint();
    size_t alive = in_.count(7);
    require(key_.second == 0 && topics + alive > 0 && alive <= kPartitionsPerBlock &&
            (alive > 0 || next_page == 0));
    uint64_t place = 0;
    for (size_t i = 0; i < alive && in_.ok(); ++i) {
      uint64_t at = in_.unsigned_varint();
      require(i == 0 || at > place);
      place = at;
      partition(handle_at(place));
    }
    if (in_.ok() && alive > 0) state_.partitions.block(key_.first)->next_page = next_page;
  }

  void topic() {
    TopicRecord record;
    TopicView view;
    record.first = handle_at(in_.unsigned_varint());
    record.name = text();
    record.life = in_.unsigned_varint32();
    require(!record.name.empty() && record.life > 0);
    uint8_t flags = in_.u8();
    bool is_alive = (flags & kTopicIsAlive) != 0;
    bool is_altered = (flags & kConfigsVersionFollows) != 0;
    require(flags <= (kTopicIsAlive | kConfigsVersionFollows) && (is_alive || !is_altered));
    if (is_alive) {
      ByteView id = in_.raw(view.id.bytes.size());
      if (in_.ok()) std::copy(id.begin(), id.end(), view.id.bytes.begin());
      record.producer_ids_before = non_negative();
      view.name = record.name;
      view.life = record.life;
      size_t configs = in_.count(2);
      for (size_t i = 0; i < configs && in_.ok(); ++i) {
        std::string name = text();
        require(view.configs.empty() || name > view.configs.rbegin()->first);
        view.configs.emplace_hint(view.configs.end(), std::move(name), text());
      }
      if (is_altered) view.configs_version = in_.unsigned_varint();
      require(is_altered == (view.configs_version != 0));
      require(!view.id.is_zero());
    }
    if (in_.ok()) require(state_.topics.restore(std::move(record), std::move(view)));
  }

  void partition(PartitionHandle handle) {
    uint64_t above_first = in_.unsigned_varint();
    require(above_first <= handle.value());
    if (!in_.ok()) return;
    auto topic =
        state_.topics.records().find(PartitionHandle(static_cast<uint32_t>(handle.value() - above_first)));
    require(topic != state_.topics.records().end() && topic->second.is_alive());
    Partition* p = in_.ok() ? state_.partitions.restore(handle) : nullptr;
    require(p != nullptr);
    if (!in_.ok()) return;
    p->topic = &topic->second;
    // Partitions of a topic come with rising handles, so their indexes rise by one.
    p->index = state_.topics.add_partition(topic->second, handle);
    state_.partitions.before_change(handle);
    require(in_.unsigned_varint() == static_cast<uint64_t>(p->index.value()));
    p->log_start = non_negative();
    int64_t readable = non_negative();
    require(p->log_start <= kEndOffsetMax && readable <= kEndOffsetMax - p->log_start);
    if (!in_.ok()) return;
    p->high_watermark = p->log_start + readable;
    std::vector<CompactRun> tail = runs();
    require(tail.size() < kRunsPerPage);
    for (const CompactRun& run : tail) p->runs.push_back(run);
    producers(*p);
  }

  void producers(Partition& p) {
    size_t count = in_.count(kProducerBytesMin);
    if (count > 0) p.producers = std::make_unique<ProducerTable>();
    int64_t id = 0;
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      uint64_t step = in_.unsigned_varint();
      require((i == 0 || step > 0) && step <= static_cast<uint64_t>(INT64_MAX - id));
      if (!in_.ok()) return;
      id += static_cast<int64_t>(step);
      read((*p.producers)[ProducerId(id)]);
    }
  }

  void read(PartitionProducer& p) {
    uint32_t epoch = in_.unsigned_varint32();
    require(epoch <= INT16_MAX);
    p.epoch = ProducerEpoch(static_cast<int16_t>(epoch & INT16_MAX));
    p.last_time = in_.varint();
    size_t batches = in_.count(kBatchBytesMin);
    require(batches > 0 && batches <= kProducerBatchesKeptMax);
    if (!in_.ok()) return;
    p.batches.reserve(batches);
    int64_t base_offset = 0;
    for (size_t i = 0; i < batches; ++i) {
      uint32_t first = in_.unsigned_varint32();
      uint32_t records = in_.unsigned_varint32();
      uint64_t step = in_.unsigned_varint();
      require(first <= INT32_MAX && records > 0 && records <= INT32_MAX &&
              step <= static_cast<uint64_t>(kEndOffsetMax - base_offset));
      if (!in_.ok()) return;
      base_offset += static_cast<int64_t>(step);
      p.batches.push_back({Sequence(static_cast<int32_t>(first)), records, base_offset});
    }
  }

  void history() {
    size_t pages = in_.count(kRunBytesMin + 3);
    PartitionBlock* block = state_.partitions.block(key_.first);
    require(pages > 0 && pages <= kPagesPerHistoryChunk && block != nullptr);
    uint64_t place = 0;
    for (size_t i = 0; i < pages && in_.ok(); ++i) {
      uint64_t at = in_.unsigned_varint();
      require(at < kPagesPerHistoryChunk && (i == 0 || at > place));
      place = at;
      uint64_t number = key_.second * kPagesPerHistoryChunk + place;
      PartitionHandle handle = handle_at(in_.unsigned_varint());
      Partition* owner = state_.partitions.find(handle);
      require(owner != nullptr && number < block->next_page);
      std::vector<CompactRun> list = runs();
      require(!list.empty());
      if (!in_.ok()) return;
      owner->runs.restore_page({.number = number, .max_timestamp = 0, .runs = std::move(list)});
      block->page_owners.emplace(number, handle);
    }
  }

  void groups() {
    size_t count = in_.count(kGroupBytesMin);
    require(count > 0 && key_.first < kGroupBuckets && key_.second == 0 &&
            count <= kGroupsMax - state_.groups.all().size());
    std::string before;
    for (size_t i = 0; i < count && in_.ok(); ++i) {
      GroupView group = read_group(in_);
      require(i == 0 || group.id > before);
      if (!in_.ok()) return;
      before = group.id;
      require(is_possible(group) && state_.groups.restore(std::move(group)));
    }
  }

  bool is_possible(const GroupView& group) const {
    if (bucket_of(hash64(group.id)) != key_.first || group.version > state_.groups.newest_version())
      return false;
    auto has_been = [&](int64_t time) { return time >= 0 && time <= state_.log_time; };
    return has_been(group.phase_since) && std::ranges::all_of(group.offsets, [&](const auto& offset) {
             return has_been(offset.second.commit_time) && state_.partitions.find(offset.first) != nullptr;
           });
  }

  std::vector<CompactRun> runs() {
    size_t count = in_.count(kRunBytesMin);
    require(count <= kRunsPerPage);
    std::vector<CompactRun> list;
    if (!in_.ok()) return list;
    list.reserve(count);
    ChunkRunContext context;
    for (size_t i = 0; i < count && in_.ok(); ++i) list.push_back(run(context));
    if (!in_.ok()) return {};
    for (CompactRun& r : list) {
      if (r.object != nullptr) state_.objects.restore_reference(*r.object);
    }
    return list;
  }

  CompactRun run(ChunkRunContext& context) {
    CompactRun r;
    uint8_t flags = in_.u8();
    require((flags & ~kKnownRunFlags) == 0);
    r.flags = flags & CompactRun::kKnownFlags;
    require((flags & CompactRun::kMarker) == 0 || (flags & kSameObject) == 0);
    if ((flags & CompactRun::kMarker) == 0) {
      if ((flags & kSameObject) == 0) {
        auto step = [this](uint64_t base) {
          return static_cast<uint64_t>(sum(static_cast<int64_t>(base), in_.varint()));
        };
        context.object.incarnation = Incarnation(step(context.object.incarnation.value()));
        context.object.number = ObjectNumber(step(context.object.number.value()));
      }
      r.object = state_.objects.find(context.object);
      uint64_t position = in_.unsigned_varint();
      r.bytes = in_.unsigned_varint32();
      require(r.object != nullptr && r.bytes > 0 && position <= r.object->bytes &&
              r.bytes <= r.object->bytes - position);
      r.position = position & (kObjectBytesMax - 1);
    }
    r.base_offset = (flags & kOffsetFollows) ? non_negative() : context.end_offset;
    r.records = in_.unsigned_varint32();
    require(r.base_offset >= context.end_offset && r.base_offset <= kEndOffsetMax && r.records > 0);
    r.max_timestamp = sum(context.max_timestamp, in_.varint());
    if (in_.ok()) context.end_offset = r.end_offset();
    context.max_timestamp = r.max_timestamp;
    return r;
  }

  StateData& state_;
  const ChunkKey key_;
  ByteReader& in_;
  uint64_t other_chunks_ = 0;
};

// Whether the lists of a partition's runs, each in order itself, are in order together.
bool is_consistent(const Partition& partition) {
  if (partition.runs.is_empty()) return partition.log_start == partition.high_watermark;
  int64_t end = 0;
  bool is_first = true;
  for (size_t i = 0; i < partition.runs.spans(); ++i) {
    std::span<const CompactRun> span = partition.runs.span(i);
    if (span.empty()) continue;
    if (is_first && span.front().end_offset() <= partition.log_start) return false;
    if (!is_first && span.front().base_offset < end) return false;
    end = span.back().end_offset();
    is_first = false;
  }
  return end == partition.high_watermark;
}

bool is_consistent(const StateData& state) {
  for (size_t number = 0; number < state.partitions.blocks(); ++number) {
    const PartitionBlock* block = state.partitions.block(number);
    if (block == nullptr) continue;
    for (const Partition& partition : block->partitions) {
      if (partition.is_alive() && !is_consistent(partition)) return false;
    }
  }
  return state.topics.finish_restore();
}

std::unexpected<EntryError> malformed(size_t chunk, std::string_view what) {
  return fail(EntryErrc::kMalformed, fmt::format("chunk {}: {}", chunk, what));
}

}  // namespace

Result<void, EntryError> decode_chunks(StateData& state, const std::vector<Slice>& chunks) {
  ChunkKey before;
  uint64_t other_chunks = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    ByteView bytes = chunks[i].view();
    if (bytes.size() < 2 + kChunkChecksumBytes) return malformed(i, "shorter than its frame");
    if (bytes[0] != kChunkVersion) {
      return fail(EntryErrc::kUnknownVersion, fmt::format("chunk {} has version {}", i, bytes[0]));
    }
    ByteView covered = bytes.first(bytes.size() - kChunkChecksumBytes);
    if (crc32c(covered) != load_be<uint32_t>(bytes.data() + covered.size())) {
      return fail(EntryErrc::kBadChecksum, fmt::format("chunk {}: the checksum does not match", i));
    }
    ByteReader in(covered.subspan(1));
    ChunkKey key;
    key.kind = ChunkKind{in.u8()};
    key.first = in.unsigned_varint();
    key.second = in.unsigned_varint();
    if (!in.ok()) return malformed(i, "has no key");
    bool is_in_order = i == 0   ? key == ChunkKey{}
                       : i == 1 ? key == ChunkKey{ChunkKind::kBrokers}
                                : key > before && key.kind > ChunkKind::kBrokers;
    if (!is_in_order) return malformed(i, "out of order");
    before = key;
    ChunkDecoder decoder(state, key, in);
    decoder.body();
    if (!in.at_end()) return malformed(i, "does not decode");
    if (i == 0) other_chunks = decoder.other_chunks();
    if (state.feature_level > kHighestFeatureLevel) {
      return fail(EntryErrc::kUnknownVersion, fmt::format("feature level {}", state.feature_level));
    }
    if (i >= 2) state.changes.mark(key);
  }
  if (chunks.size() < 2 || chunks.size() - 2 != other_chunks) {
    return malformed(chunks.size(), fmt::format("{} chunks beside the first two were told", other_chunks));
  }
  if (!is_consistent(state) || !state.objects.finish_restore()) {
    return malformed(chunks.size(), "the chunks contradict each other");
  }
  return {};
}

}  // namespace varve::metadata
