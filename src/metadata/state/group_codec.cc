#include "metadata/state/group_codec.h"

namespace varve::metadata {
namespace {

// The least each item takes, so that a count can be checked against the bytes that are there.
constexpr size_t kProtocolBytesMin = 2;
constexpr size_t kMemberBytesMin = 8;
constexpr size_t kOffsetBytesMin = 6;

int64_t difference(int64_t value, int64_t base) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(base));
}
int64_t sum(int64_t base, int64_t delta) {
  return static_cast<int64_t>(static_cast<uint64_t>(base) + static_cast<uint64_t>(delta));
}

void read_members(ByteReader& reader, GroupView& group) {
  size_t count = reader.count(kMemberBytesMin);
  if (count > 0 && group.phase == GroupPhase::kEmpty) reader.fail();
  for (size_t i = 0; i < count && reader.ok(); ++i) {
    std::string id = read_text(reader);
    if (i > 0 && id <= group.members.rbegin()->first) reader.fail();
    GroupMember member;
    member.details = read_details(reader);
    member.assignment = read_text(reader);
    if (reader.ok()) group.members.emplace_hint(group.members.end(), std::move(id), std::move(member));
  }
}

void read_offsets(ByteReader& reader, GroupView& group) {
  size_t count = reader.count(kOffsetBytesMin);
  uint64_t partition = 0;
  int64_t commit_time = 0;
  for (size_t i = 0; i < count && reader.ok(); ++i) {
    uint32_t step = reader.unsigned_varint32();
    partition += step;
    if ((i > 0 && step == 0) || partition > UINT32_MAX) reader.fail();
    CommittedOffset offset;
    offset.offset = reader.varint();
    offset.leader_epoch = reader.varint32();
    offset.metadata = read_text(reader);
    commit_time = sum(commit_time, reader.varint());
    offset.commit_time = commit_time;
    offset.expires_at = reader.varint();
    if (offset.expires_at < -1) reader.fail();
    if (!reader.ok()) return;
    group.offsets.emplace_hint(group.offsets.end(), PartitionHandle(static_cast<uint32_t>(partition)),
                               std::move(offset));
  }
}

}  // namespace

std::string read_text(ByteReader& reader) { return std::string(as_text(reader.prefixed())); }

std::optional<std::string> read_nullable(ByteReader& reader) {
  uint64_t size_and_one = reader.unsigned_varint();
  if (size_and_one == 0) return std::nullopt;
  return std::string(as_text(reader.raw(size_and_one - 1)));
}

GroupPhase read_phase(ByteReader& reader) {
  uint8_t phase = reader.u8();
  if (phase < kGroupPhases) return GroupPhase{phase};
  reader.fail();
  return GroupPhase::kEmpty;
}

MemberDetails read_details(ByteReader& reader) {
  MemberDetails details;
  details.instance_id = read_nullable(reader);
  details.client_id = read_text(reader);
  details.client_host = read_text(reader);
  details.session_timeout_ms = reader.unsigned_varint32();
  details.rebalance_timeout_ms = reader.unsigned_varint32();
  details.protocols.resize(reader.count(kProtocolBytesMin));
  for (GroupProtocol& protocol : details.protocols) {
    protocol.name = read_text(reader);
    protocol.metadata = read_text(reader);
  }
  return details;
}

void write_group(ByteWriter& out, const GroupView& group) {
  out.prefixed(group.id);
  out.unsigned_varint(group.version);
  out.prefixed(group.protocol_type);
  out.u8(static_cast<uint8_t>(group.phase));
  out.varint(group.generation);
  write_nullable(out, group.protocol);
  out.prefixed(group.leader);
  out.varint(group.phase_since);
  out.unsigned_varint(group.members.size());
  for (const auto& [id, member] : group.members) {
    out.prefixed(id);
    write_details(out, member.details);
    out.prefixed(member.assignment);
  }
  out.unsigned_varint(group.offsets.size());
  uint32_t partition = 0;
  int64_t commit_time = 0;
  for (const auto& [handle, offset] : group.offsets) {
    out.unsigned_varint(handle.value() - partition);
    out.varint(offset.offset);
    out.varint(offset.leader_epoch);
    out.prefixed(offset.metadata);
    out.varint(difference(offset.commit_time, commit_time));
    out.varint(offset.expires_at);
    partition = handle.value();
    commit_time = offset.commit_time;
  }
}

GroupView read_group(ByteReader& reader) {
  GroupView group;
  group.id = read_text(reader);
  group.version = reader.unsigned_varint();
  group.protocol_type = read_text(reader);
  group.phase = read_phase(reader);
  group.generation = reader.varint32();
  group.protocol = read_nullable(reader);
  group.leader = read_text(reader);
  group.phase_since = reader.varint();
  if (group.id.size() > kGroupIdBytesMax || group.version == 0) reader.fail();
  read_members(reader, group);
  read_offsets(reader, group);
  return group;
}

}  // namespace varve::metadata
