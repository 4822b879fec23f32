// Any bytes: decoding an entry ends without reading outside or taking memory first, and what decodes encodes to
// something that decodes to the same. The checksum is made right, so that the fuzzer gets past it.
#include <vector>

#include "base/crc32c.h"
#include "metadata/state/entry.h"

namespace varve::metadata {
namespace {

void decode(ByteView bytes) {
  auto header = decode_entry_header(bytes);
  auto entry = decode_entry(bytes);
  if (!entry) return;
  CHECK(header && header->nonce == entry->nonce && header->time == entry->time);
  std::vector<uint8_t> encoded = encode_entry(*entry);
  auto again = decode_entry(encoded);
  CHECK(again && *again == *entry);
  size_t bound = kEntryFrameBytesMax;
  for (const Command& command : entry->commands) bound += encoded_size_bound(command);
  CHECK(encoded.size() <= bound);
}

void decode_sealed(ByteView input) {
  ByteWriter out;
  out.u8(1);
  out.raw(input);
  out.be(crc32c(out.view()));
  decode(out.view());
}

}  // namespace
}  // namespace varve::metadata

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  varve::metadata::decode({data, size});
  varve::metadata::decode_sealed({data, size});
  return 0;
}
