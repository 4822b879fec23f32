#include "base/crc32c.h"
#include "metadata/state/entry_codec.h"
#include "metadata/state/group_codec.h"

namespace varve::metadata {
namespace {

// The least each item takes, so that a count can be checked against the bytes that are there.
constexpr size_t kRunBytesMin = 5;
constexpr size_t kProducerBatchBytesMin = 5;
constexpr size_t kSavedMemberBytesMin = 2;
constexpr size_t kOffsetCommitBytesMin = 4;

int64_t sum(int64_t base, int64_t delta) {
  return static_cast<int64_t>(static_cast<uint64_t>(base) + static_cast<uint64_t>(delta));
}

class CommandDecoder {
 public:
  CommandDecoder(ByteReader& reader, const Entry& header) : reader_(reader), header_(header) {}

  // Any answer is only good while the reader is ok().
  Command decode(CommandKind kind) {
    switch (kind) {
      case CommandKind::kRegisterBroker:
        return register_broker();
      case CommandKind::kFenceBroker:
        return FenceBroker{Incarnation(reader_.unsigned_varint())};
      case CommandKind::kBeat: {
        LogPosition applied(reader_.unsigned_varint());
        return Beat{applied, reader_.be<uint64_t>()};
      }
      case CommandKind::kRaiseFeatureLevel:
        return RaiseFeatureLevel{FeatureLevel(reader_.unsigned_varint32())};
      case CommandKind::kSetLimits:
        return set_limits();
      case CommandKind::kCreateTopic:
        return create_topic();
      case CommandKind::kDeleteTopic:
        return DeleteTopic{uuid()};
      case CommandKind::kCommitObject:
        return commit_object();
      case CommandKind::kAdvanceGcFence:
        return AdvanceGcFence{FenceEpoch(reader_.unsigned_varint())};
      case CommandKind::kObjectsDeleted:
        return objects_deleted();
      case CommandKind::kAllocateProducerIds:
        return AllocateProducerIds{reader_.unsigned_varint32()};
      case CommandKind::kExpireProducers:
        return ExpireProducers{reader_.varint()};
      case CommandKind::kSetLogStart: {
        PartitionHandle partition(reader_.unsigned_varint32());
        return SetLogStart{partition, Offset(reader_.varint())};
      }
      case CommandKind::kSnapshotTaken: {
        LogPosition position(reader_.unsigned_varint());
        LogPosition predecessor(reader_.unsigned_varint());
        uint64_t state_hash = reader_.be<uint64_t>();
        return SnapshotTaken{position, predecessor, state_hash, reader_.unsigned_varint()};
      }
      case CommandKind::kAddPartitions: {
        Uuid topic = uuid();
        return AddPartitions{topic, reader_.unsigned_varint32()};
      }
      case CommandKind::kAlterTopicConfigs:
        return alter_topic_configs();
      case CommandKind::kSaveGroup:
        return save_group();
      case CommandKind::kCommitOffsets:
        return commit_offsets();
      case CommandKind::kDeleteOffsets:
        return delete_offsets();
      case CommandKind::kDeleteGroup:
        return delete_group();
      case CommandKind::kSetGroupLimits:
        return SetGroupLimits{reader_.unsigned_varint()};
      case CommandKind::kExpireOffsets:
        return ExpireOffsets{reader_.varint()};
    }
    reader_.fail();
    return Beat{};
  }

 private:
  std::string text() { return read_text(reader_); }
  Uuid uuid() {
    Uuid id;
    ByteView bytes = reader_.raw(id.bytes.size());
    if (reader_.ok()) std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
    return id;
  }
  bool flag(uint8_t flags, uint8_t bit) { return (flags & bit) != 0; }

  RegisterBroker register_broker() {
    RegisterBroker c;
    c.broker = BrokerId(static_cast<int32_t>(reader_.unsigned_varint32()));
    c.highest_level = FeatureLevel(reader_.unsigned_varint32());
    c.endpoints.resize(reader_.count(4));
    for (Endpoint& endpoint : c.endpoints) {
      endpoint.listener = text();
      endpoint.host = text();
      endpoint.port = reader_.be<uint16_t>();
    }
    c.rack = text();
    return c;
  }

  SetLimits set_limits() {
    SetLimits c;
    c.producer_batches_kept = reader_.unsigned_varint32();
    c.partitions_max = reader_.unsigned_varint32();
    c.producer_expiry_ms = reader_.unsigned_varint();
    return c;
  }

  template <class Value>
  void read_named(std::map<std::string, Value>& values, Value (*read)(ByteReader&)) {
    size_t count = reader_.count(2);
    for (size_t i = 0; i < count && reader_.ok(); ++i) {
      std::string name = text();
      // Names rise, so that one map has one encoding.
      if (!values.empty() && name <= values.rbegin()->first) reader_.fail();
      values.emplace_hint(values.end(), std::move(name), read(reader_));
    }
  }

  CreateTopic create_topic() {
    CreateTopic c;
    c.id = uuid();
    c.name = text();
    c.partitions = reader_.unsigned_varint32();
    read_named(c.configs, read_text);
    return c;
  }

  AlterTopicConfigs alter_topic_configs() {
    AlterTopicConfigs c;
    c.topic = uuid();
    c.version = reader_.unsigned_varint();
    read_named(c.changes, read_nullable);
    return c;
  }

  SaveGroup save_group() {
    SaveGroup c;
    c.group = text();
    c.owners = reader_.unsigned_varint();
    c.version = reader_.unsigned_varint();
    c.protocol_type = text();
    c.phase = read_phase(reader_);
    c.generation = reader_.varint32();
    c.protocol = read_nullable(reader_);
    c.leader = text();
    c.members.resize(reader_.count(kSavedMemberBytesMin));
    for (SavedMember& member : c.members) {
      if (!reader_.ok()) break;
      member.id = text();
      uint8_t flags = reader_.u8();
      if (flags & ~EntryMemberFlags::kKnown) reader_.fail();
      if (flag(flags, EntryMemberFlags::kDetails)) member.details = read_details(reader_);
      if (flag(flags, EntryMemberFlags::kAssignment)) member.assignment = text();
    }
    return c;
  }

  CommitOffsets commit_offsets() {
    CommitOffsets c;
    c.group = text();
    c.owners = reader_.unsigned_varint();
    c.generation = reader_.varint32();
    c.member = text();
    c.instance_id = read_nullable(reader_);
    c.expires_at = reader_.varint();
    c.offsets.resize(reader_.count(kOffsetCommitBytesMin));
    uint32_t before = 0;
    for (OffsetCommit& offset : c.offsets) {
      if (!reader_.ok()) break;
      offset.partition = partition(before);
      offset.offset = reader_.varint();
      offset.leader_epoch = reader_.varint32();
      offset.metadata = text();
    }
    return c;
  }

  DeleteOffsets delete_offsets() {
    DeleteOffsets c;
    c.group = text();
    c.owners = reader_.unsigned_varint();
    c.version = reader_.unsigned_varint();
    c.partitions.resize(reader_.count(1));
    uint32_t before = 0;
    for (PartitionHandle& handle : c.partitions) handle = partition(before);
    return c;
  }

  DeleteGroup delete_group() {
    DeleteGroup c;
    c.group = text();
    c.owners = reader_.unsigned_varint();
    c.version = reader_.unsigned_varint();
    return c;
  }

  // Told relative to the one before it.
  PartitionHandle partition(uint32_t& before) {
    int64_t handle = sum(before, reader_.varint());
    if (handle < 0 || handle > UINT32_MAX) {
      reader_.fail();
      return {};
    }
    before = static_cast<uint32_t>(handle);
    return PartitionHandle(before);
  }

  ObjectId object() {
    Incarnation incarnation(header_.incarnation.value() - reader_.unsigned_varint());
    return ObjectId{incarnation, ObjectNumber(reader_.unsigned_varint())};
  }

  CommitObject commit_object() {
    CommitObject c;
    c.object = object();
    c.epoch = FenceEpoch(reader_.unsigned_varint());
    c.bytes = reader_.unsigned_varint();
    c.crc = reader_.be<uint32_t>();
    c.run_count = reader_.unsigned_varint32();
    c.runs.resize(reader_.count(kRunBytesMin));
    EntryRunContext context{.max_timestamp = header_.time.value()};
    for (Run& r : c.runs) {
      if (!reader_.ok()) break;
      run(r, context);
    }
    return c;
  }

  ObjectsDeleted objects_deleted() {
    ObjectsDeleted c;
    c.objects.resize(reader_.count(2));
    for (ObjectId& id : c.objects) id = object();
    return c;
  }

  void run(Run& r, EntryRunContext& context) {
    uint8_t flags = reader_.u8();
    if (flags & ~EntryRunFlags::kKnown) reader_.fail();
    r.is_transactional = flag(flags, EntryRunFlags::kTransactional);
    r.is_log_append_time = flag(flags, EntryRunFlags::kLogAppendTime);
    r.index = flag(flags, EntryRunFlags::kIndexFollows) ? reader_.unsigned_varint32() : context.next_index;
    r.partition = partition(context.partition);
    r.position =
        flag(flags, EntryRunFlags::kPositionFollows) ? reader_.unsigned_varint() : context.next_position;
    r.bytes = reader_.unsigned_varint32();
    r.records = reader_.unsigned_varint32();
    r.max_timestamp = sum(context.max_timestamp, reader_.varint());
    if (flag(flags, EntryRunFlags::kOneProducer)) {
      if (flag(flags, EntryRunFlags::kProducerList)) return reader_.fail();
      r.producers.push_back(producer(r.bytes, r.records, context));
    } else if (flag(flags, EntryRunFlags::kProducerList)) {
      producers(r, context);
    }
    context.next_index = r.index + 1;
    context.next_position = r.position + r.bytes;
    context.max_timestamp = r.max_timestamp;
  }

  void producers(Run& r, EntryRunContext& context) {
    size_t batches = reader_.count(kProducerBatchBytesMin);
    if (batches == 0) return reader_.fail();  // no list has one encoding: the flag is clear
    r.producers.reserve(batches);
    for (size_t i = 0; i < batches && reader_.ok(); ++i) {
      uint32_t bytes = reader_.unsigned_varint32();
      uint32_t records = reader_.unsigned_varint32();
      r.producers.push_back(producer(bytes, records, context));
    }
  }

  ProducerBatch producer(uint32_t bytes, uint32_t records, EntryRunContext& context) {
    ProducerBatch batch{.bytes = bytes, .records = records};
    batch.producer_id = ProducerId(sum(context.producer_id, reader_.varint()));
    uint32_t epoch = reader_.unsigned_varint32();
    if (epoch > UINT16_MAX) reader_.fail();
    batch.epoch = ProducerEpoch(static_cast<int16_t>(epoch));
    batch.first_sequence = Sequence(static_cast<int32_t>(reader_.unsigned_varint32()));
    context.producer_id = batch.producer_id.value();
    return batch;
  }

  ByteReader& reader_;
  const Entry& header_;
};

// The level whose grammar first had the command: an entry may hold only what its own level has.
FeatureLevel level_of(CommandKind) { return FeatureLevel(1); }

// Version and checksum; `reader` then stands at the header and ends before the checksum.
Result<ByteReader, EntryError> open_frame(ByteView bytes) {
  if (bytes.size() < 1 + kEntryChecksumBytes) return fail(EntryErrc::kMalformed, "shorter than its frame");
  if (bytes[0] != kEntryVersion) return fail(EntryErrc::kUnknownVersion, fmt::format("version {}", bytes[0]));
  ByteView covered = bytes.first(bytes.size() - kEntryChecksumBytes);
  if (crc32c(covered) != load_be<uint32_t>(bytes.data() + covered.size())) {
    return fail(EntryErrc::kBadChecksum, "the checksum does not match");
  }
  return ByteReader(covered.subspan(1));
}

Entry read_header(ByteReader& reader) {
  Entry entry;
  entry.nonce = Nonce(reader.be<uint64_t>());
  entry.incarnation = Incarnation(reader.unsigned_varint());
  entry.sequence = EntrySequence(reader.unsigned_varint());
  entry.level = FeatureLevel(reader.unsigned_varint32());
  uint32_t shard = reader.unsigned_varint32();
  if (shard > UINT16_MAX || entry.level.value() == 0) reader.fail();
  entry.shard = static_cast<uint16_t>(shard);
  entry.time = WallTime(reader.varint());
  return entry;
}

}  // namespace

Result<Entry, EntryError> decode_entry_header(ByteView bytes) {
  auto reader = open_frame(bytes);
  if (!reader) return pass_error(reader);
  Entry entry = read_header(*reader);
  if (!reader->ok()) return fail(EntryErrc::kMalformed, "the header does not decode");
  return entry;
}

Result<Entry, EntryError> decode_entry(ByteView bytes) {
  auto reader = open_frame(bytes);
  if (!reader) return pass_error(reader);
  Entry entry = read_header(*reader);
  if (!reader->ok()) return fail(EntryErrc::kMalformed, "the header does not decode");
  if (entry.level > kHighestFeatureLevel) {
    return fail(EntryErrc::kUnknownVersion, fmt::format("feature level {}", entry.level));
  }
  size_t commands = reader->count(2);
  entry.commands.reserve(commands);
  CommandDecoder decoder(*reader, entry);
  for (size_t i = 0; i < commands && reader->ok(); ++i) {
    CommandKind kind{reader->u8()};
    if (level_of(kind) > entry.level) reader->fail();
    entry.commands.push_back(decoder.decode(kind));
  }
  if (!reader->at_end()) {
    return fail(EntryErrc::kMalformed, fmt::format("command {} does not decode", entry.commands.size()));
  }
  return entry;
}

}  // namespace varve::metadata
