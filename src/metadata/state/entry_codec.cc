// The bytes of an entry, version 1: docs/formats/entry.md.
#include <type_traits>
#include <utility>

#include "base/crc32c.h"
#include "metadata/state/entry.h"

namespace varve::metadata {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kChecksumBytes = 4;

// Flags of a run.
constexpr uint8_t kTransactional = 1 << 0;
constexpr uint8_t kLogAppendTime = 1 << 1;
constexpr uint8_t kProducerList = 1 << 2;     // a list of batches with producer ids follows
constexpr uint8_t kOneProducer = 1 << 3;      // one batch, of the run's own bytes and records, follows
constexpr uint8_t kIndexFollows = 1 << 4;     // else one more than the index before
constexpr uint8_t kPositionFollows = 1 << 5;  // else where the run before ends
constexpr uint8_t kKnownFlags = (1 << 6) - 1;

// The least a run or a producer batch takes, so that a count can be checked against the bytes that are there.
constexpr size_t kRunBytesMin = 5;
constexpr size_t kProducerBatchBytesMin = 5;

// A difference of two integers of 64 bits, wrapping, so that any pair of values has one.
int64_t difference(int64_t value, int64_t base) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(base));
}
int64_t sum(int64_t base, int64_t delta) {
  return static_cast<int64_t>(static_cast<uint64_t>(base) + static_cast<uint64_t>(delta));
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

// What a run is told relative to; starts afresh with each CommitObject.
struct RunContext {
  uint32_t next_index = 0;
  uint64_t next_position = 0;
  uint32_t partition = 0;
  int64_t max_timestamp;  // starts as the entry's time
  int64_t producer_id = 0;
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
    RunContext context{.max_timestamp = header_.time.value()};
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

 private:
  // Objects are nearly always of the sender's own incarnation.
  void object(const ObjectId& id) {
    sink_.unsigned_varint(header_.incarnation.value() - id.incarnation.value());
    sink_.unsigned_varint(id.number.value());
  }

  void run(const Run& r, RunContext& context) {
    bool is_one_producer =
        r.producers.size() == 1 && r.producers[0].bytes == r.bytes && r.producers[0].records == r.records;
    uint8_t flags = 0;
    if (r.is_transactional) flags |= kTransactional;
    if (r.is_log_append_time) flags |= kLogAppendTime;
    if (is_one_producer) {
      flags |= kOneProducer;
    } else if (!r.producers.empty()) {
      flags |= kProducerList;
    }
    if (r.index != context.next_index) flags |= kIndexFollows;
    if (r.position != context.next_position) flags |= kPositionFollows;

    sink_.u8(flags);
    if (flags & kIndexFollows) sink_.unsigned_varint(r.index);
    sink_.varint(static_cast<int64_t>(r.partition.value()) - static_cast<int64_t>(context.partition));
    if (flags & kPositionFollows) sink_.unsigned_varint(r.position);
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
    context.partition = r.partition.value();
    context.max_timestamp = r.max_timestamp;
  }

  void producer(const ProducerBatch& batch, RunContext& context) {
    sink_.varint(difference(batch.producer_id.value(), context.producer_id));
    sink_.unsigned_varint(static_cast<uint16_t>(batch.epoch.value()));
    sink_.unsigned_varint(static_cast<uint32_t>(batch.first_sequence.value()));
    context.producer_id = batch.producer_id.value();
  }

  Sink& sink_;
  const Entry& header_;
};

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
    }
    reader_.fail();
    return Beat{};
  }

 private:
  std::string text() { return std::string(as_text(reader_.prefixed())); }
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

  CreateTopic create_topic() {
    CreateTopic c;
    c.id = uuid();
    c.name = text();
    c.partitions = reader_.unsigned_varint32();
    size_t configs = reader_.count(2);
    for (size_t i = 0; i < configs && reader_.ok(); ++i) {
      std::string name = text();
      // Names rise, so that one topic has one encoding.
      if (!c.configs.empty() && name <= c.configs.rbegin()->first) reader_.fail();
      c.configs.emplace_hint(c.configs.end(), std::move(name), text());
    }
    return c;
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
    RunContext context{.max_timestamp = header_.time.value()};
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

  void run(Run& r, RunContext& context) {
    uint8_t flags = reader_.u8();
    if (flags & ~kKnownFlags) reader_.fail();
    r.is_transactional = flag(flags, kTransactional);
    r.is_log_append_time = flag(flags, kLogAppendTime);
    r.index = flag(flags, kIndexFollows) ? reader_.unsigned_varint32() : context.next_index;
    int64_t partition = sum(context.partition, reader_.varint());
    if (partition < 0 || partition > UINT32_MAX) return reader_.fail();
    r.partition = PartitionHandle(static_cast<uint32_t>(partition));
    r.position = flag(flags, kPositionFollows) ? reader_.unsigned_varint() : context.next_position;
    r.bytes = reader_.unsigned_varint32();
    r.records = reader_.unsigned_varint32();
    r.max_timestamp = sum(context.max_timestamp, reader_.varint());
    if (flag(flags, kOneProducer)) {
      if (flag(flags, kProducerList)) return reader_.fail();
      r.producers.push_back(producer(r.bytes, r.records, context));
    } else if (flag(flags, kProducerList)) {
      producers(r, context);
    }
    context.next_index = r.index + 1;
    context.next_position = r.position + r.bytes;
    context.partition = r.partition.value();
    context.max_timestamp = r.max_timestamp;
  }

  void producers(Run& r, RunContext& context) {
    size_t batches = reader_.count(kProducerBatchBytesMin);
    if (batches == 0) return reader_.fail();  // no list has one encoding: the flag is clear
    r.producers.reserve(batches);
    for (size_t i = 0; i < batches && reader_.ok(); ++i) {
      uint32_t bytes = reader_.unsigned_varint32();
      uint32_t records = reader_.unsigned_varint32();
      r.producers.push_back(producer(bytes, records, context));
    }
  }

  ProducerBatch producer(uint32_t bytes, uint32_t records, RunContext& context) {
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

struct KindAndName {
  CommandKind kind;
  std::string_view name;
};
// In the order of the variant.
constexpr KindAndName kKinds[] = {
    {CommandKind::kRegisterBroker, "RegisterBroker"},
    {CommandKind::kFenceBroker, "FenceBroker"},
    {CommandKind::kBeat, "Beat"},
    {CommandKind::kRaiseFeatureLevel, "RaiseFeatureLevel"},
    {CommandKind::kSetLimits, "SetLimits"},
    {CommandKind::kCreateTopic, "CreateTopic"},
    {CommandKind::kDeleteTopic, "DeleteTopic"},
    {CommandKind::kCommitObject, "CommitObject"},
    {CommandKind::kAdvanceGcFence, "AdvanceGcFence"},
    {CommandKind::kObjectsDeleted, "ObjectsDeleted"},
    {CommandKind::kAllocateProducerIds, "AllocateProducerIds"},
    {CommandKind::kExpireProducers, "ExpireProducers"},
    {CommandKind::kSetLogStart, "SetLogStart"},
    {CommandKind::kSnapshotTaken, "SnapshotTaken"},
};
static_assert(std::size(kKinds) == std::variant_size_v<Command>);

// Version and checksum; `reader` then stands at the header and ends before the checksum.
Result<ByteReader, EntryError> open_frame(ByteView bytes) {
  if (bytes.size() < 1 + kChecksumBytes) return fail(EntryErrc::kMalformed, "shorter than its frame");
  if (bytes[0] != kVersion) return fail(EntryErrc::kUnknownVersion, fmt::format("version {}", bytes[0]));
  ByteView covered = bytes.first(bytes.size() - kChecksumBytes);
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

template <class Sink>
void encode_command(Sink& sink, const Entry& header, const Command& command) {
  sink.u8(static_cast<uint8_t>(kind_of(command)));
  std::visit(CommandEncoder<Sink>(sink, header), command);
}

}  // namespace

CommandKind kind_of(const Command& command) { return kKinds[command.index()].kind; }

std::string_view name_of(CommandKind kind) {
  for (const KindAndName& known : kKinds) {
    if (known.kind == kind) return known.name;
  }
  return "unknown";
}

std::vector<uint8_t> encode_entry(const Entry& entry) {
  ByteWriter writer(256);
  writer.u8(kVersion);
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
