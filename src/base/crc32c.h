// CRC-32C (Castagnoli), the checksum of Kafka's record batch v2 and of every varve format.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace varve {

// The CRC of the bytes that gave `crc` followed by `bytes`; crc32c(whole) == crc32c_extend(crc32c(a), b).
uint32_t crc32c_extend(uint32_t crc, ByteView bytes);
inline uint32_t crc32c(ByteView bytes) { return crc32c_extend(0, bytes); }

// The CRC of a message whose CRC was `crc`, after some of its bytes changed: `difference` is the old bytes xor the
// new, and `bytes_behind` bytes follow them. Costs the length of the difference and the logarithm of what follows.
uint32_t crc32c_patch(uint32_t crc, ByteView difference, uint64_t bytes_behind);

// The portable implementation, for machines without the instruction and for the test that compares both.
uint32_t crc32c_extend_portable(uint32_t crc, ByteView bytes);

}  // namespace varve
