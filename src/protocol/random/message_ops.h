// Every message behind one interface, for tests that go over all of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "protocol/message_codec.h"
#include "protocol/message_printer.h"
#include "protocol/messages/api_key.h"

namespace varve::protocol {

struct MessageOps {
  std::string_view name;
  ApiKey key;
  bool is_request;
  int16_t min_version;
  int16_t max_version;

  // Decodes and encodes again.
  Result<Slice, CodecError> (*reencode)(const Slice& bytes, int16_t version, DecodeLimits limits);
  // Encoding of a random message; verifies first that it decodes to an equal one.
  Result<Slice, CodecError> (*random_bytes)(Random& random, int16_t version);
  // Decodes both and compares the messages; false if one does not decode.
  bool (*equal)(const Slice& left, const Slice& right, int16_t version);
  // As to_string(); empty if it does not decode.
  std::string (*print)(const Slice& bytes, int16_t version, size_t max_bytes);
};

// Of all APIs by key, request before response.
std::vector<const MessageOps*> all_messages();

template <class M>
constexpr MessageOps message_ops(std::string_view name) {
  return {
      .name = name,
      .key = M::kApiKey,
      .is_request = M::kIsRequest,
      .min_version = M::kMinVersion,
      .max_version = M::kMaxVersion,
      .reencode = [](const Slice& bytes, int16_t version, DecodeLimits limits) -> Result<Slice, CodecError> {
        auto message = decode_message<M>(bytes, version, limits);
        if (!message) return pass_error(message);
        return encode_message(*message, version);
      },
      .random_bytes = [](Random& random, int16_t version) -> Result<Slice, CodecError> {
        M message;
        randomize(message, random, version);
        Slice bytes = encode_message(message, version);
        auto back = decode_message<M>(bytes, version);
        if (!back) return pass_error(back);
        if (*back != message) return fail(CodecErrc::kMalformed, "decoded to another: " + to_string(message));
        return bytes;
      },
      .equal = [](const Slice& left, const Slice& right, int16_t version) -> bool {
        auto a = decode_message<M>(left, version);
        auto b = decode_message<M>(right, version);
        return a && b && *a == *b;
      },
      .print = [](const Slice& bytes, int16_t version, size_t max_bytes) -> std::string {
        auto message = decode_message<M>(bytes, version);
        return message ? to_string(*message, max_bytes) : std::string();
      },
  };
}

}  // namespace varve::protocol
