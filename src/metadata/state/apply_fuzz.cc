// Any entries on top of a plausible history: apply answers every one, the hash kept up to date is the hash from
// scratch, and the state restores from its own chunks.
#include <vector>

#include "base/crc32c.h"
#include "metadata/state/random_history.h"

namespace varve::metadata {
namespace {

constexpr uint64_t kPartitionsMax = 1000;  // more are legal, and slow

std::vector<Slice> start(uint64_t seed) {
  RandomHistory history(seed);
  for (int i = 0; i < 100; ++i) history.next();
  return history.state.to_chunks();
}

// A live sender's next header, then any commands.
std::vector<uint8_t> entry_of_live_sender(const State& state, uint8_t which, ByteView commands) {
  std::vector<Incarnation> live;
  for (const auto& [incarnation, broker] : state.incarnations()) {
    if (broker.is_live) live.push_back(incarnation);
  }
  if (live.empty()) return {commands.begin(), commands.end()};
  Incarnation sender = live[which % live.size()];
  const BrokerIncarnation& broker = state.incarnations().at(sender);
  Entry header{.nonce = broker.nonce,
               .incarnation = sender,
               .sequence = broker.last_sequence.plus(1),
               .time = broker.last_time.plus(which)};
  std::vector<uint8_t> bytes = encode_entry(header);
  // Drops the count of commands, which is 0, and the checksum.
  bytes.resize(bytes.size() - 5);
  ByteWriter out;
  out.raw(bytes);
  out.raw(commands);
  out.be(crc32c(out.view()));
  return out.take();
}

void check(const State& state) {
  auto restored = State::from_chunks(state.to_chunks());
  // A raised feature level is beyond this binary: it may not load such a state.
  if (state.feature_level() > kHighestFeatureLevel) return;
  CHECK(restored.has_value(), "{}", restored.error().message);
  CHECK(restored->hash() == state.hash());
}

void apply_all(ByteReader in) {
  static const std::vector<std::vector<Slice>> starts = {start(1), start(2), start(3), start(4)};
  State state = std::move(State::from_chunks(starts[in.u8() % starts.size()]).value());
  while (in.ok() && in.remaining() > 0 && state.limits().partitions_max <= kPartitionsMax) {
    uint8_t which = in.u8();
    ByteView bytes = in.raw(std::min<size_t>(in.be<uint16_t>(), in.remaining()));
    LogPosition position = state.position().plus(1 + which % 3);
    if (which >= 0xf0) {
      state.apply(position, bytes);
    } else {
      state.apply(position, entry_of_live_sender(state, which, bytes));
    }
  }
  check(state);
}

}  // namespace
}  // namespace varve::metadata

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  varve::metadata::apply_all(varve::ByteReader({data, size}));
  return 0;
}
