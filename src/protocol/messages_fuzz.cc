// Any bytes as any message of any version, and as a request frame: the decoder takes no more memory than its limit,
// and what it accepts it can write and read again.
#include "base/check.h"
#include "protocol/frame.h"
#include "protocol/random/message_ops.h"

namespace {

using namespace varve;
using namespace varve::protocol;

void as_frame(const Slice& bytes) {
  auto request = parse_request(bytes);
  if (!request) return;
  CHECK(request->body.size() < bytes.size());
  MessageWriter writer;
  const int16_t header_version = request->api->request_header_version(request->version());
  request->header.write(writer, header_version);
  MessageReader reader(writer.finish_joined());
  RequestHeader again;
  again.read(reader, header_version);
  CHECK(reader.ok() && again == request->header);
}

void as_message(const MessageOps& ops, int16_t version, const Slice& bytes) {
  auto once = ops.reencode(bytes, version, {.decoded_bytes = size_t{1} << 20});
  if (!once) return;
  auto twice = ops.reencode(*once, version, {.decoded_bytes = size_t{2} << 20});
  CHECK(twice && *twice == *once, "{} version {} is not stable", ops.name, version);
  CHECK(ops.equal(bytes, *once, version), "{} version {} came out as another message", ops.name, version);
  CHECK(ops.print(bytes, version, 300).size() <= 303);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<const MessageOps*> messages = all_messages();
  if (size < 2) return 0;
  const size_t choice = data[0] % (messages.size() + 1);
  // A copy of its own, so that a read past the end is seen.
  const Slice bytes = Slice::copy_of({data + 2, size - 2});
  if (choice == messages.size()) {
    as_frame(bytes);
    return 0;
  }
  const MessageOps& ops = *messages[choice];
  const int versions = ops.max_version - ops.min_version + 1;
  as_message(ops, static_cast<int16_t>(ops.min_version + data[1] % versions), bytes);
  return 0;
}
