// Any chunks, most of them nearly those of a real state, under right checksums: restoring ends in a state or an
// error. A state so restored is as good as any other: it can be applied to, and restores from its own chunks.
#include <memory>
#include <vector>

#include "base/crc32c.h"
#include "metadata/state/random_history.h"

namespace varve::metadata {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> start(uint64_t seed) {
  RandomHistory history(seed);
  for (int i = 0; i < 150; ++i) history.next();
  std::vector<Bytes> result;
  for (const Slice& chunk : history.state.to_chunks())
    result.emplace_back(chunk.view().begin(), chunk.view().end());
  return result;
}

Slice sealed(Bytes chunk) {
  chunk.resize(chunk.size() - 4);
  ByteWriter out;
  out.raw(chunk);
  out.be(crc32c(chunk));
  return Slice::take(out.take());
}

// Changes, adds and removes bytes of chunks as the input says.
void damage(std::vector<Bytes>& chunks, ByteReader& in) {
  while (in.ok() && in.remaining() >= 5) {
    Bytes& chunk = chunks[in.u8() % chunks.size()];
    uint8_t what = in.u8();
    size_t at = in.be<uint16_t>() % (chunk.size() - 4);
    uint8_t value = in.u8();
    if (what < 0xc0) {
      chunk[at] = value;
    } else if (what < 0xe0) {
      chunk.insert(chunk.begin() + static_cast<ptrdiff_t>(at), value);
    } else if (chunk.size() > 6) {
      chunk.erase(chunk.begin() + static_cast<ptrdiff_t>(at));
    }
  }
}

void restore(ByteReader in) {
  static const std::vector<std::vector<Bytes>> starts = {start(1), start(2), start(3), start(4)};
  std::vector<Bytes> chunks = starts[in.u8() % starts.size()];
  damage(chunks, in);
  std::vector<Slice> slices;
  for (Bytes& chunk : chunks) slices.push_back(sealed(std::move(chunk)));
  auto restored = State::from_chunks(slices);
  if (!restored) return;
  Random random(1);
  for (int i = 0; i < 3 && restored->position().value() < UINT64_MAX; ++i) {
    restored->apply(restored->position().plus(1), encode_entry(random_entry(random)));
  }
  auto again = State::from_chunks(restored->to_chunks());
  CHECK(again.has_value(), "{}", again.error().message);
  CHECK(again->hash() == restored->hash());
}

}  // namespace
}  // namespace varve::metadata

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  varve::metadata::restore(varve::ByteReader({data, size}));
  return 0;
}
