// The bytes of consumer groups in entries and in chunks: docs/formats/entry.md and snapshot.md.
#pragma once

#include "metadata/state/state.h"

namespace varve::metadata {

template <class Sink>
void write_nullable(Sink& sink, const std::optional<std::string>& text) {
  sink.unsigned_varint(text ? text->size() + 1 : 0);
  if (text) sink.raw(as_bytes(*text));
}

template <class Sink>
void write_details(Sink& sink, const MemberDetails& details) {
  write_nullable(sink, details.instance_id);
  sink.prefixed(details.client_id);
  sink.prefixed(details.client_host);
  sink.unsigned_varint(details.session_timeout_ms);
  sink.unsigned_varint(details.rebalance_timeout_ms);
  sink.unsigned_varint(details.protocols.size());
  for (const GroupProtocol& protocol : details.protocols) {
    sink.prefixed(protocol.name);
    sink.prefixed(protocol.metadata);
  }
}

// What these give is only good while the reader is ok().
std::string read_text(ByteReader& reader);
std::optional<std::string> read_nullable(ByteReader& reader);
GroupPhase read_phase(ByteReader& reader);
MemberDetails read_details(ByteReader& reader);

// A group in a chunk, with everything that the state has of it.
void write_group(ByteWriter& out, const GroupView& group);
// Fails on what contradicts itself: ids or handles that do not rise, an empty group with members.
GroupView read_group(ByteReader& reader);
// The least that a group takes in a chunk.
inline constexpr size_t kGroupBytesMin = 10;

}  // namespace varve::metadata
