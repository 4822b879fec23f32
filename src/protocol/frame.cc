#include "protocol/frame.h"

#include <fmt/format.h>

namespace varve::protocol {

Result<size_t, FrameError> frame_size(std::array<uint8_t, kFrameLengthBytes> length, size_t max_bytes) {
  int32_t size = load_be<int32_t>(length.data());
  if (size < 0) return fail(FrameErrc::kBadLength, fmt::format("frame of {} bytes", size));
  if (static_cast<size_t>(size) > max_bytes) {
    return fail(FrameErrc::kTooLarge, fmt::format("frame of {} bytes, the limit is {}", size, max_bytes));
  }
  return static_cast<size_t>(size);
}

Result<RequestFrame, FrameError> parse_request(const Slice& frame) {
  // Key and version come first in every header version, and tell which one this is.
  if (frame.size() < 4) {
    return fail(FrameErrc::kMalformedHeader, fmt::format("request of {} bytes has no header", frame.size()));
  }
  int16_t key = load_be<int16_t>(frame.data());
  int16_t version = load_be<int16_t>(frame.data() + 2);
  RequestFrame request;
  request.api = find_api(key);
  if (request.api == nullptr || !request.api->served) {
    return fail(FrameErrc::kUnknownApi, fmt::format("API key {} is not served", key));
  }
  if (!request.api->supports(version)) {
    if (request.api->key != ApiKey::kApiVersions) {
      return fail(FrameErrc::kUnsupportedVersion,
                  fmt::format("{} version {} is not served", request.api->name, version));
    }
    request.api_versions_unsupported = true;
  }
  MessageReader reader(frame);
  request.header.read(reader, request.api->request_header_version(version));
  if (!reader.ok()) {
    return fail(FrameErrc::kMalformedHeader,
                fmt::format("malformed header of a {} request, version {}", request.api->name, version));
  }
  request.body = reader.rest();
  return request;
}

Result<Slice, FrameError> parse_response(const Slice& frame, const ApiInfo& api, int16_t version,
                                         int32_t correlation_id) {
  MessageReader reader(frame);
  ResponseHeader header;
  header.read(reader, api.response_header_version(version));
  if (!reader.ok()) {
    return fail(FrameErrc::kMalformedHeader, fmt::format("malformed header of a {} response", api.name));
  }
  if (header.correlation_id != correlation_id) {
    return fail(FrameErrc::kUnexpectedResponse, fmt::format("response to request {} where {} was due",
                                                            header.correlation_id, correlation_id));
  }
  return reader.rest();
}

void begin_response(MessageWriter& writer, const ApiInfo& api, int16_t version, int32_t correlation_id) {
  CHECK(api.supports(version), "{} response in version {}", api.name, version);
  writer.put(int32_t{0});
  ResponseHeader{.correlation_id = correlation_id}.write(writer, api.response_header_version(version));
}

void begin_request(MessageWriter& writer, const ApiInfo& api, int16_t version, int32_t correlation_id,
                   const std::optional<std::string>& client_id) {
  CHECK(api.supports(version), "{} request in version {}", api.name, version);
  writer.put(int32_t{0});
  RequestHeader header{.request_api_key = static_cast<int16_t>(api.key),
                       .request_api_version = version,
                       .correlation_id = correlation_id,
                       .client_id = client_id};
  header.write(writer, api.request_header_version(version));
}

std::vector<Slice> end_frame(MessageWriter& writer) {
  size_t size = writer.size() - kFrameLengthBytes;
  CHECK(size <= INT32_MAX, "frame of {} bytes", size);
  writer.patch_int32(0, static_cast<int32_t>(size));
  return writer.finish();
}

}  // namespace varve::protocol
