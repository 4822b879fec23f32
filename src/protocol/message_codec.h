// Whole messages: decode from bytes, encode to bytes. A generated message M has
//   M::kApiKey, kIsRequest, kMinVersion, kMaxVersion, and M::Response if it is a request;
//   write(MessageWriter&, version)  only for versions in range; what a version lacks is left out;
//   read(MessageReader&, version)   into a fresh M; the reader's ok() tells whether it fitted;
//   ==, and print(MessagePrinter&)  (use to_string() of message_printer.h).
// Bytes and records of a decoded message share the owner of the bytes it came from; all else is its own.
#pragma once

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/message_reader.h"
#include "protocol/message_writer.h"

namespace varve::protocol {

enum class CodecErrc {
  kUnsupportedVersion,  // not between kMinVersion and kMaxVersion
  kMalformed,  // truncated, a count or size that cannot be, a null where there is none, over the limits
};
using CodecError = ErrorOf<CodecErrc>;

// Bytes after the message are left alone, as Kafka does.
template <class M>
Result<M, CodecError> decode_message(const Slice& bytes, int16_t version, DecodeLimits limits = {}) {
  if (version < M::kMinVersion || version > M::kMaxVersion) {
    return fail(CodecErrc::kUnsupportedVersion, fmt::format("version {} is not supported", version));
  }
  MessageReader reader(bytes, limits);
  M message;
  message.read(reader, version);
  if (!reader.ok()) {
    return fail(CodecErrc::kMalformed,
                fmt::format("{} bytes do not hold a message of version {}", bytes.size(), version));
  }
  return message;
}

// The message alone, in one slice: for tests and for messages stored inside others.
template <class M>
Slice encode_message(const M& message, int16_t version) {
  MessageWriter writer;
  message.write(writer, version);
  return writer.finish_joined();
}

}  // namespace varve::protocol
