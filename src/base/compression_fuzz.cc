// Any bytes as any codec: an error or at most the limit, and a round trip when taken as plain input.
#include "base/compression_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve;
  if (size < 1) return 0;
  constexpr size_t kLimit = 1 << 20;
  Codec codec = kAllCodecs[data[0] % kAllCodecs.size()];
  ByteView input(data + 1, size - 1);
  static Decompressor decompressor;
  auto result = decompress(decompressor, codec, input, kLimit);
  CHECK(!result || result->size() <= kLimit);
  ByteWriter packed;
  CHECK(compress(codec, input, packed).has_value());
  auto back = decompress(decompressor, codec, packed.view(), input.size());
  CHECK(back.has_value() && back->size() == input.size());
  CHECK(std::equal(input.begin(), input.end(), back->begin()));
  return 0;
}
