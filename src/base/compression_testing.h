// Payloads decompressed as a whole, and names of codecs, for tests; what is shipped reads in pieces.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/compression.h"

namespace varve {

inline std::string_view codec_name(Codec codec) {
  static constexpr std::array<std::string_view, kAllCodecs.size()> kNames = {"none", "gzip", "snappy", "lz4",
                                                                             "zstd"};
  return kNames.at(static_cast<size_t>(codec));
}

// All output, or the error, read in pieces of `piece_bytes`.
inline Result<std::vector<uint8_t>, CompressionError> decompress(Decompressor& decompressor, Codec codec,
                                                                 ByteView input, size_t output_bytes_max,
                                                                 size_t piece_bytes = 64 * 1024) {
  decompressor.start(codec, input, output_bytes_max);
  std::vector<uint8_t> out;
  std::vector<uint8_t> piece(piece_bytes);
  while (true) {
    auto got = decompressor.read(piece);
    if (!got) return pass_error(got);
    if (*got == 0) return out;
    out.insert(out.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(*got));
  }
}

}  // namespace varve
