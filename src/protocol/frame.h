// Frames of the Kafka protocol: four bytes of length, a header, a message. Sans I/O: who reads the socket calls
// frame_size() on the first four bytes, reads that many into one buffer, and hands it to parse_request().
// Origin: https://kafka.apache.org/protocol#protocol_common, KIP-482, KIP-511.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "protocol/api_table.h"
#include "protocol/message_codec.h"
#include "protocol/messages/header.h"

namespace varve::protocol {

inline constexpr size_t kFrameLengthBytes = 4;

// All of them end the connection, as in Kafka.
enum class FrameErrc {
  kBadLength,           // negative
  kTooLarge,            // above the limit
  kMalformedHeader,     // too short, or a header that cannot be
  kUnknownApi,          // no such API, or none that this broker serves
  kUnsupportedVersion,  // of an API other than ApiVersions
  kUnexpectedResponse,  // correlation id of another request
};
using FrameError = ErrorOf<FrameErrc>;

// Bytes that follow the four given ones; tested before any memory is taken for them.
Result<size_t, FrameError> frame_size(std::array<uint8_t, kFrameLengthBytes> length, size_t max_bytes);

// A request with its header read and its body not.
struct RequestFrame {
  const ApiInfo* api = nullptr;  // never null; static
  RequestHeader header;          // a client id of null means none
  Slice body;                    // shares the frame's owner
  // An ApiVersions request of a version that we do not know. Its body is not to be read: answer it with
  // unsupported_api_versions_response() in version 0 and keep the connection.
  bool api_versions_unsupported = false;

  int16_t version() const { return header.request_api_version; }
};

// frame: all bytes after the length.
Result<RequestFrame, FrameError> parse_request(const Slice& frame);

// The frame of a response, length included, ready to be sent slice by slice; records are referenced, not copied.
// `version` is that of the request (0 for the answer to an unsupported ApiVersions).
template <class M>
std::vector<Slice> response_frame(const M& response, int16_t version, int32_t correlation_id);

// The same for a request of a client. client_id: nullopt is sent as null.
template <class M>
std::vector<Slice> request_frame(const M& request, int16_t version, int32_t correlation_id,
                                 const std::optional<std::string>& client_id);

// The body of the response to a request of `api` in `version`; frame: all bytes after the length.
Result<Slice, FrameError> parse_response(const Slice& frame, const ApiInfo& api, int16_t version,
                                         int32_t correlation_id);

// Below: what the templates are made of.

void begin_response(MessageWriter& writer, const ApiInfo& api, int16_t version, int32_t correlation_id);
void begin_request(MessageWriter& writer, const ApiInfo& api, int16_t version, int32_t correlation_id,
                   const std::optional<std::string>& client_id);
// Fills in the length.
std::vector<Slice> end_frame(MessageWriter& writer);

template <class M>
std::vector<Slice> response_frame(const M& response, int16_t version, int32_t correlation_id) {
  static_assert(!M::kIsRequest);
  MessageWriter writer;
  begin_response(writer, api_info(M::kApiKey), version, correlation_id);
  response.write(writer, version);
  return end_frame(writer);
}

template <class M>
std::vector<Slice> request_frame(const M& request, int16_t version, int32_t correlation_id,
                                 const std::optional<std::string>& client_id) {
  static_assert(M::kIsRequest);
  MessageWriter writer;
  begin_request(writer, api_info(M::kApiKey), version, correlation_id, client_id);
  request.write(writer, version);
  return end_frame(writer);
}

}  // namespace varve::protocol
