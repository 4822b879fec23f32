#include <utility>

#include "base/crc32c.h"
#include "metadata/state/entry_codec.h"
#include "metadata/state/group_codec.h"

namespace varve::metadata {
namespace {

// A difference of two integers of 64 bits, wrapping, so that any pair of values has one.
int64_t difference(int64_t value, int64_t base) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(base));
}

// Takes what ByteWriter takes, and only counts.
class ByteCounter {
 public:
  template <std::integral T>
  void be(T) {
    size_ += sizeof(T);
  }
  void u8(uint8_t) { ++size_; }
  void unsigned_varint(uint64_t value) {
    for (++size_; value >= 0x80; value >>= 7) ++size_;
  }
  void varint(int64_t value) {
    unsigned_varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void raw(ByteView bytes) { size_ += bytes.size(); }
  void prefixed(std::string_view text) {
    unsigned_varint(text.size());
    size_ += text.size();
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

template <class Sink>
class CommandEncoder {
 public:
  CommandEncoder(Sink& sink, const Entry& header) : sink_(sink), header_(header) {}

  void operator()(const RegisterBroker& c) {
    sink_.unsigned_varint(static_cast<uint32_t>(c.broker.value()));
    sink_.unsigned_varint(c.highest_level.value());
    sink_.unsigned_varint(c.endpoints.size());
    for (const Endpoint& endpoint : c.endpoints) {
      sink_.prefixed(endpoint.listener);
      sink_.prefixed(endpoint.host);
      sink_.be(endpoint.port);
    }
    sink_.prefixed(c.rack);
  }
  void operator()(const FenceBroker& c) { sink_.unsigned_varint(c.incarnation.value()); }
  void operator()(const Beat& c) {
    sink_.unsigned_varint(c.applied.value());
    sink_.be(c.state_hash);
  }
  void operator()(const RaiseFeatureLevel& c) { sink_.unsigned_varint(c.level.value()); }
  void operator()(const SetLimits& c) {
    sink_.unsigned_varint(c.producer_batches_kept);
    sink_.unsigned_varint(c.partitions_max);
    sink_.unsigned_varint(c.producer_expiry_ms);
  }
  void operator()(const CreateTopic& c) {
    sink_.raw(c.id.bytes);
    sink_.prefixed(c.name);
    sink_.unsigned_varint(c.partitions);
    sink_.unsigned_varint(c.configs.size());
    for (const auto& [name, value] : c.configs) {
      sink_.prefixed(name);
      sink_.prefixed(value);
    }
  }
  void operator()(const DeleteTopic& c) { sink_.raw(c.id.bytes); }
  void operator()(const CommitObject& c) {
    object(c.object);
    sink_.unsigned_varint(c.epoch.value());
    sink_.unsigned_varint(c.bytes);
    sink_.be(c.crc);
    sink_.unsigned_varint(c.run_count);
    sink_.unsigned_varint(c.runs.size());
    EntryRunContext context{.max_timestamp = header_.time.value()};
    for (const Run& r : c.runs) run(r, context);
  }
  void operator()(const AdvanceGcFence& c) { sink_.unsigned_varint(c.epoch.value()); }
  void operator()(const ObjectsDeleted& c) {
    sink_.unsigned_varint(c.objects.size());
    for (const ObjectId& id : c.objects) object(id);
  }
  void operator()(const AllocateProducerIds& c) { sink_.unsigned_varint(c.count); }
  void operator()(const ExpireProducers& c) { sink_.varint(c.idle_since); }
  void operator()(const SetLogStart& c) {
    sink_.unsigned_varint(c.partition.value());
    sink_.varint(c.log_start.value());
  }
  void operator()(const SnapshotTaken& c) {
    sink_.unsigned_varint(c.position.value());
    sink_.unsigned_varint(c.predecessor.value());
    sink_.be(c.state_hash);
    sink_.unsigned_varint(c.bytes);
  }
  void operator()(const AddPartitions& c) {
    sink_.raw(c.topic.bytes);
    sink_.unsigned_varint(c.total);
  }
  void operator()(const AlterTopicConfigs& c) {
    sink_.raw(c.topic.bytes);
    sink_.unsigned_varint(c.version);
    sink_.unsigned_varint(c.changes.size());
    for (const auto& [name, value] : c.changes) {
      sink_.prefixed(name);
      write_nullable(sink_, value);
    }
  }
  void operator()(const SaveGroup& c) {
    sink_.prefixed(c.group);
    sink_.unsigned_varint(c.owners);
    sink_.unsigned_varint(c.version);
    sink_.prefixed(c.protocol_type);
    sink_.u8(static_cast<uint8_t>(c.phase));
    sink_.varint(c.generation);
    write_nullable(sink_, c.protocol);
    sink_.prefixed(c.leader);
    sink_.unsigned_varint(c.members.size());
    for (const SavedMember& member : c.members) {
      sink_.prefixed(member.id);
      uint8_t flags = 0;
      if (member.details) flags |= EntryMemberFlags::kDetails;
      if (member.assignment) flags |= EntryMemberFlags::kAssignment;
      sink_.u8(flags);
      if (member.details) write_details(sink_, *member.details);
      if (member.assignment) sink_.prefixed(*member.assignment);
    }
  }
  void operator()(const CommitOffsets& c) {
    sink_.prefixed(c.group);
    sink_.unsigned_varint(c.owners);
    sink_.varint(c.generation);
    sink_.prefixed(c.member);
    write_nullable(sink_, c.instance_id);
    sink_.varint(c.expires_at);
    sink_.unsigned_varint(c.offsets.size());
    uint32_t before = 0;
    for (const OffsetCommit& offset : c.offsets) {
      partition(offset.partition, before);
      sink_.varint(offset.offset);
      sink_.varint(offset.leader_epoch);
      sink_.prefixed(offset.metadata);
    }
  }
  void operator()(const DeleteOffsets& c) {
    sink_.prefixed(c.group);
    sink_.unsigned_varint(c.owners);
    sink_.unsigned_varint(c.version);
    sink_.unsigned_varint(c.partitions.size());
    uint32_t before = 0;
    for (PartitionHandle handle : c.partitions) partition(handle, before);
  }
  void operator()(const DeleteGroup& c) {
    sink_.prefixed(c.group);
    sink_.unsigned_varint(c.owners);
    sink_.unsigned_varint(c.version);
  }
  void operator()(const SetGroupLimits& c) { sink_.unsigned_varint(c.offsets_retention_ms); }
  void operator()(const ExpireOffsets& c) { sink_.varint(c.cut_off); }

 private:
  // Relative to the one before it.
  void partition(PartitionHandle handle, uint32_t& before) {
    sink_.varint(static_cast<int64_t>(handle.value()) - static_cast<int64_t>(before));
    before = handle.value();
  }

  // Objects are nearly always of the sender's own incarnation.
  void object(const ObjectId& id) {
    sink_.unsigned_varint(header_.incarnation.value() - id.incarnation.value());
    sink_.unsigned_varint(id.number.value());
  }

  void run(const Run& r, EntryRunContext& context) {
    bool is_one_producer =
        r.producers.size() == 1 && r.producers[0].bytes == r.bytes && r.producers[0].records == r.records;
    uint8_t flags = 0;
    if (r.is_transactional) flags |= EntryRunFlags::kTransactional;
    if (r.is_log_append_time) flags |= EntryRunFlags::kLogAppendTime;
    if (is_one_producer) {
      flags |= EntryRunFlags::kOneProducer;
    } else if (!r.producers.empty()) {
      flags |= EntryRunFlags::kProducerList;
    }
    if (r.index != context.next_index) flags |= EntryRunFlags::kIndexFollows;
    if (r.position != context.next_position) flags |= EntryRunFlags::kPositionFollows;

    sink_.u8(flags);
    if (flags & EntryRunFlags::kIndexFollows) sink_.unsigned_varint(r.index);
    partition(r.partition, context.partition);
    if (flags & EntryRunFlags::kPositionFollows) sink_.unsigned_varint(r.position);
    sink_.unsigned_varint(r.bytes);
    sink_.unsigned_varint(r.records);
    sink_.varint(difference(r.max_timestamp, context.max_timestamp));
    if (is_one_producer) {
      producer(r.producers[0], context);
    } else if (!r.producers.empty()) {
      sink_.unsigned_varint(r.producers.size());
      for (const ProducerBatch& batch : r.producers) {
        sink_.unsigned_varint(batch.bytes);
        sink_.unsigned_varint(batch.records);
        producer(batch, context);
      }
    }
    context.next_index = r.index + 1;
    context.next_position = r.position + r.bytes;
    context.max_timestamp = r.max_timestamp;
  }

  void producer(const ProducerBatch& batch, EntryRunContext& context) {
    sink_.varint(difference(batch.producer_id.value(), context.producer_id));
    sink_.unsigned_varint(static_cast<uint16_t>(batch.epoch.value()));
    sink_.unsigned_varint(static_cast<uint32_t>(batch.first_sequence.value()));
    context.producer_id = batch.producer_id.value();
  }

  Sink& sink_;
  const Entry& header_;
};

template <class Sink>
void encode_command(Sink& sink, const Entry& header, const Command& command) {
  sink.u8(static_cast<uint8_t>(kind_of(command)));
  std::visit(CommandEncoder<Sink>(sink, header), command);
}

}  // namespace

std::vector<uint8_t> encode_entry(const Entry& entry) {
  ByteWriter writer(256);
  writer.u8(kEntryVersion);
  writer.be(entry.nonce.value());
  writer.unsigned_varint(entry.incarnation.value());
  writer.unsigned_varint(entry.sequence.value());
  writer.unsigned_varint(entry.level.value());
  writer.unsigned_varint(entry.shard);
  writer.varint(entry.time.value());
  writer.unsigned_varint(entry.commands.size());
  for (const Command& command : entry.commands) encode_command(writer, entry, command);
  writer.be(crc32c(writer.view()));
  return writer.take();
}

size_t encoded_size_bound(const Command& command) {
  // What depends on the entry takes at most 10 bytes each time it occurs, and at least one is counted here: its
  // time once in a commit, its incarnation once an object.
  constexpr size_t kSlack = 9;
  size_t entry_dependent = 0;
  if (std::holds_alternative<CommitObject>(command)) entry_dependent = 2 * kSlack;
  if (const auto* deleted = std::get_if<ObjectsDeleted>(&command)) {
    entry_dependent = kSlack * deleted->objects.size();
  }
  ByteCounter counter;
  encode_command(counter, Entry{}, command);
  return counter.size() + entry_dependent;
}

}  // namespace varve::metadata
