// The codecs of Kafka's record batches, in Kafka's framings:
//   gzip    RFC 1952, one or more members
//   snappy  snappy-java's stream (magic, version ints 1 and 1, then big-endian lengths and raw blocks); a
//   bare raw
//           block is read too, as old clients send it
//   lz4     LZ4 frame format, one frame of independent blocks (Kafka's own reader refuses linked ones)
//   zstd    RFC 8878, one or more frames
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace varve {

// Values are Kafka's: the low three bits of a batch's attributes.
enum class Codec : uint8_t { kNone = 0, kGzip = 1, kSnappy = 2, kLz4 = 3, kZstd = 4 };
inline constexpr std::array<Codec, 5> kAllCodecs = {Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4,
                                                    Codec::kZstd};

std::optional<Codec> codec_of_id(int id);

enum class CompressionErrc : uint8_t {
  kCorrupt,   // not this codec's format, cut short, or followed by other bytes
  kTooLarge,  // more output than allowed; or, compressing, input above 1 GiB
  kInternal,  // the library could not get memory
};
using CompressionError = ErrorOf<CompressionErrc>;

// One codec's reader; an implementation detail of Decompressor.
class DecompressionStream;

// Decompresses one input after another in pieces, keeping the libraries' contexts (some 100 KiB each) in
// between. One user at a time; an io executor owns one. Memory: the contexts, plus the codec's window or
// block, which never exceeds the output limit; a large one is given back when the next input starts.
class Decompressor {
 public:
  Decompressor();
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;
  ~Decompressor();

  // Begins with `input`, which must live until the last read; drops what went before. At most
  // `output_bytes_max` bytes will come out.
  void start(Codec codec, ByteView input, size_t output_bytes_max);

  // The next 1 to into.size() bytes; 0: the end, and the input was whole. An error repeats until start().
  Result<size_t, CompressionError> read(MutableByteView into);

 private:
  std::array<std::unique_ptr<DecompressionStream>, kAllCodecs.size()> streams_;
  DecompressionStream* current_ = nullptr;
  size_t left_bytes_ = 0;
  std::optional<CompressionError> error_;
};

// Appends the compressed form to `out`, at the libraries' default levels, framed as the Java client frames
// it.
Result<void, CompressionError> compress(Codec codec, ByteView input, ByteWriter& out);

}  // namespace varve
