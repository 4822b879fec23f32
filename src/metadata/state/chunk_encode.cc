#include "base/crc32c.h"
#include "metadata/state/chunk_codec.h"
#include "metadata/state/group_codec.h"

namespace varve::metadata {
namespace {

int64_t difference(int64_t value, int64_t base) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(base));
}
int64_t difference(uint64_t value, uint64_t base) { return static_cast<int64_t>(value - base); }

class ChunkEncoder {
 public:
  ChunkEncoder(const StateData& state, const ChunkKey& key) : state_(state), key_(key) {}

  std::vector<uint8_t> encode_part(PartitionHandle handle) {
    const Partition* found = state_.partitions.find(handle);
    if (found != nullptr) partition(handle.value() - first_handle().value(), *found);
    return out_.take();
  }
  std::vector<uint8_t> encode_general_fields() {
    general_fields();
    return out_.take();
  }

  std::vector<uint8_t> encode() {
    out_ = ByteWriter(4096);
    out_.u8(kChunkVersion);
    out_.u8(static_cast<uint8_t>(key_.kind));
    out_.unsigned_varint(key_.first);
    out_.unsigned_varint(key_.second);
    if (!body()) return {};
    out_.be(crc32c(out_.view()));
    return out_.take();
  }

 private:
  // False if there is nothing in this chunk.
  bool body() {
    switch (key_.kind) {
      case ChunkKind::kGeneral:
        out_.unsigned_varint(state_.chunk_hashes.size());
        general_fields();
        return true;
      case ChunkKind::kBrokers:
        brokers();
        return true;
      case ChunkKind::kObjects:
        return objects();
      case ChunkKind::kPartitions:
        return partitions();
      case ChunkKind::kHistory:
        return history();
      case ChunkKind::kGroups:
        return groups();
    }
    return false;
  }

  void general_fields() {
    out_.unsigned_varint(state_.position.value());
    out_.unsigned_varint(state_.feature_level.value());
    out_.varint(state_.log_time);
    out_.unsigned_varint(state_.fence_epoch.value());
    out_.unsigned_varint(state_.limits.producer_batches_kept);
    out_.unsigned_varint(state_.limits.partitions_max);
    out_.unsigned_varint(state_.limits.producer_expiry_ms);
    out_.unsigned_varint(state_.partitions.next_handle().value());
    out_.unsigned_varint(static_cast<uint64_t>(state_.next_producer_id));
    out_.unsigned_varint(static_cast<uint64_t>(state_.producer_ids_at_expiry));
    out_.unsigned_varint(state_.image_version);
    out_.unsigned_varint(state_.snapshots.size());
    for (const RetainedSnapshot& snapshot : state_.snapshots) {
      out_.unsigned_varint(snapshot.position.value());
      out_.be(snapshot.state_hash);
      out_.unsigned_varint(snapshot.bytes);
    }
    if (!has_group_fields(state_)) return;
    out_.unsigned_varint(state_.group_limits.offsets_retention_ms);
    out_.unsigned_varint(state_.groups.newest_version());
  }

  void brokers() {
    out_.unsigned_varint(state_.brokers.all().size());
    uint64_t before = 0;
    for (const auto& [incarnation, broker] : state_.brokers.all()) {
      out_.unsigned_varint(incarnation.value() - before);
      before = incarnation.value();
      out_.be(broker.nonce.value());
      out_.unsigned_varint(static_cast<uint32_t>(broker.broker.value()));
      out_.unsigned_varint(broker.last_sequence.value());
      out_.unsigned_varint(broker.highest_level.value());
      out_.varint(broker.last_time.value());
      out_.unsigned_varint(broker.beat_position.value());
      out_.be(broker.beat_hash);
      out_.u8(broker.is_live ? 1 : 0);
      if (!broker.is_live) continue;
      out_.unsigned_varint(broker.endpoints.size());
      for (const Endpoint& endpoint : broker.endpoints) {
        out_.prefixed(endpoint.listener);
        out_.prefixed(endpoint.host);
        out_.be(endpoint.port);
      }
      out_.prefixed(broker.rack);
    }
  }

  bool objects() {
    ObjectId first{Incarnation(key_.first), ObjectNumber(key_.second * kObjectsPerChunk)};
    auto begin = state_.objects.by_id().lower_bound(first);
    auto end = begin;
    uint64_t count = 0;
    while (end != state_.objects.by_id().end() && chunk_of(end->first) == key_) ++end, ++count;
    if (count == 0) return false;
    out_.unsigned_varint(count);
    uint64_t before = first.number.value();
    for (auto at = begin; at != end; ++at) {
      out_.unsigned_varint(at->first.number.value() - before);
      before = at->first.number.value();
      object(at->second);
    }
    return true;
  }

  void object(const Object& o) {
    uint8_t flags = 0;
    if (o.may_have_readers) flags |= kMayHaveReaders;
    if (o.is_pending()) flags |= kPending;
    if (o.needs_grace) flags |= kNeedsGrace;
    out_.u8(flags);
    out_.unsigned_varint(o.epoch.value());
    out_.unsigned_varint(o.bytes);
    out_.be(o.crc);
    out_.unsigned_varint(o.run_count);
    out_.unsigned_varint(o.resolved);
    if (o.is_pending()) {
      out_.unsigned_varint(o.dereferenced.position.value());
      out_.varint(o.dereferenced.log_time);
    }
    if (o.resolved == o.run_count) return;
    out_.unsigned_varint(o.resolved_bits.size());
    for (uint64_t word : o.resolved_bits) out_.be(word);
  }

  PartitionHandle first_handle() const {
    return PartitionHandle(static_cast<uint32_t>(key_.first * kPartitionsPerBlock));
  }

  bool partitions() {
    const auto& records = state_.topics.records();
    auto begin = records.lower_bound(first_handle());
    uint64_t topics = 0;
    auto end = begin;
    while (end != records.end() && end->first.value() / kPartitionsPerBlock == key_.first) ++end, ++topics;
    const PartitionBlock* block = state_.partitions.block(key_.first);
    if (topics == 0 && block == nullptr) return false;

    out_.unsigned_varint(topics);
    for (auto at = begin; at != end; ++at) topic(at->second);
    if (block == nullptr) {
      out_.unsigned_varint(0);
      out_.unsigned_varint(0);
      return true;
    }
    // While a cut waits for the block, what changed since is kept aside as it was.
    const BlockCut* cut = block->cut.get();
    out_.unsigned_varint(cut != nullptr ? cut->next_page : block->next_page);
    out_.unsigned_varint(cut != nullptr ? cut->alive : block->alive);
    for (uint32_t i = 0; i < kPartitionsPerBlock; ++i) {
      if (cut != nullptr) {
        auto kept = cut->parts.find(i);
        if (kept != cut->parts.end()) {
          out_.raw(kept->second);
          continue;
        }
      }
      if (block->partitions[i].is_alive()) partition(i, block->partitions[i]);
    }
    return true;
  }

  void topic(const TopicRecord& record) {
    out_.unsigned_varint(record.first.value() - first_handle().value());
    out_.prefixed(record.name);
    out_.unsigned_varint(record.life);
    bool is_altered = record.is_alive() && record.view->configs_version != 0;
    out_.u8((record.is_alive() ? kTopicIsAlive : 0) | (is_altered ? kConfigsVersionFollows : 0));
    if (!record.is_alive()) return;
    out_.raw(record.view->id.bytes);
    out_.unsigned_varint(static_cast<uint64_t>(record.producer_ids_before));
    out_.unsigned_varint(record.view->configs.size());
    for (const auto& [name, value] : record.view->configs) {
      out_.prefixed(name);
      out_.prefixed(value);
    }
    if (is_altered) out_.unsigned_varint(record.view->configs_version);
  }

  void partition(uint32_t place, const Partition& p) {
    out_.unsigned_varint(place);
    out_.unsigned_varint(first_handle().value() + place - p.topic->first.value());
    out_.unsigned_varint(static_cast<uint32_t>(p.index.value()));
    out_.unsigned_varint(static_cast<uint64_t>(p.log_start));
    out_.unsigned_varint(static_cast<uint64_t>(p.high_watermark - p.log_start));
    runs(p.runs.span(p.runs.spans() - 1));
    out_.unsigned_varint(p.producers ? p.producers->size() : 0);
    if (!p.producers) return;
    int64_t before = 0;
    for (const auto& [id, known] : *p.producers) {
      out_.unsigned_varint(static_cast<uint64_t>(id.value() - before));
      before = id.value();
      producer(known);
    }
  }

  void producer(const PartitionProducer& p) {
    out_.unsigned_varint(static_cast<uint16_t>(p.epoch.value()));
    out_.varint(p.last_time);
    out_.unsigned_varint(p.batches.size());
    int64_t before = 0;
    for (const KeptBatch& batch : p.batches) {
      out_.unsigned_varint(static_cast<uint32_t>(batch.first.value()));
      out_.unsigned_varint(batch.records);
      out_.unsigned_varint(static_cast<uint64_t>(batch.base_offset - before));
      before = batch.base_offset;
    }
  }

  bool history() {
    const PartitionBlock* block = state_.partitions.block(key_.first);
    if (block == nullptr) return false;
    uint64_t first = key_.second * kPagesPerHistoryChunk;
    auto begin = block->page_owners.lower_bound(first);
    auto end = block->page_owners.lower_bound(first + kPagesPerHistoryChunk);
    if (begin == end) return false;
    out_.unsigned_varint(static_cast<uint64_t>(std::distance(begin, end)));
    for (auto at = begin; at != end; ++at) {
      const Partition* owner = state_.partitions.find(at->second);
      out_.unsigned_varint(at->first - first);
      out_.unsigned_varint(at->second.value() - first_handle().value());
      runs(owner->runs.page(at->first)->runs);
    }
    return true;
  }

  bool groups() {
    const GroupTable::Bucket& bucket = state_.groups.bucket(key_.first);
    if (bucket.empty()) return false;
    out_.unsigned_varint(bucket.size());
    for (const auto& [id, group] : bucket) {
      if (state_.bugs.offsets_lost_at_snapshot) {
        GroupView bare = *group;
        bare.offsets.clear();
        write_group(out_, bare);
      } else {
        write_group(out_, *group);
      }
    }
    return true;
  }

  void runs(std::span<const CompactRun> list) {
    out_.unsigned_varint(list.size());
    ChunkRunContext context;
    for (const CompactRun& r : list) run(r, context);
  }

  void run(const CompactRun& r, ChunkRunContext& context) {
    bool is_same_object = r.object != nullptr && r.object->id == context.object;
    uint8_t flags = r.flags;
    if (is_same_object) flags |= kSameObject;
    if (r.base_offset != context.end_offset) flags |= kOffsetFollows;
    out_.u8(flags);
    if (r.object != nullptr) {
      if (!is_same_object) {
        const ObjectId& id = r.object->id;
        out_.varint(difference(id.incarnation.value(), context.object.incarnation.value()));
        out_.varint(difference(id.number.value(), context.object.number.value()));
        context.object = id;
      }
      out_.unsigned_varint(r.position);
      out_.unsigned_varint(r.bytes);
    }
    if (flags & kOffsetFollows) out_.unsigned_varint(static_cast<uint64_t>(r.base_offset));
    out_.unsigned_varint(r.records);
    out_.varint(difference(r.max_timestamp, context.max_timestamp));
    context.end_offset = r.end_offset();
    context.max_timestamp = r.max_timestamp;
  }

  const StateData& state_;
  const ChunkKey key_;
  ByteWriter out_;
};

}  // namespace

std::vector<uint8_t> encode_chunk(const StateData& state, const ChunkKey& key) {
  return ChunkEncoder(state, key).encode();
}

std::vector<uint8_t> encode_partition(const StateData& state, PartitionHandle handle) {
  return ChunkEncoder(state, {ChunkKind::kPartitions, handle.value() / kPartitionsPerBlock})
      .encode_part(handle);
}

std::vector<uint8_t> encode_general_fields(const StateData& state) {
  return ChunkEncoder(state, {ChunkKind::kGeneral}).encode_general_fields();
}

std::vector<uint8_t> encode_general(uint64_t other_chunks, ByteView fields) {
  ByteWriter out(fields.size() + 24);
  out.u8(kChunkVersion);
  out.u8(static_cast<uint8_t>(ChunkKind::kGeneral));
  out.unsigned_varint(0);
  out.unsigned_varint(0);
  out.unsigned_varint(other_chunks);
  out.raw(fields);
  out.be(crc32c(out.view()));
  return out.take();
}

}  // namespace varve::metadata
