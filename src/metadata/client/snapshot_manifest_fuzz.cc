// Any bytes: decoding a manifest ends without reading outside or taking memory first, and what decodes encodes to
// something that decodes to the same. The checksum is made right, so that the fuzzer gets past it.
#include "base/check.h"
#include "base/crc32c.h"
#include "metadata/client/snapshot_store.h"

namespace varve::metadata {
namespace {

void decode_sealed(ByteView input) {
  ByteWriter out;
  out.raw(input);
  out.be(crc32c(out.view()));
  auto manifest = decode_manifest(out.view());
  if (!manifest) return;
  auto again = decode_manifest(encode_manifest(*manifest));
  CHECK(again && again->chunks.size() == manifest->chunks.size());
  CHECK(again->position == manifest->position && again->state_hash == manifest->state_hash);
}

}  // namespace
}  // namespace varve::metadata

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  varve::ByteView input(data, size);
  (void)varve::metadata::decode_manifest(input);
  varve::metadata::decode_sealed(input);
  return 0;
}
