#include "base/crc32c.h"

#include <array>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace varve {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, reflected

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? (value >> 1) ^ kPolynomial : value >> 1;
    table[i] = value;
  }
  return table;
}

// Product of two polynomials modulo kPolynomial; the highest bit is the coefficient of x^0.
uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t mask = 1u << 31; mask != 0; mask >>= 1) {
    if ((a & mask) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t extend_sse42(uint32_t crc, ByteView bytes) {
  uint64_t state = ~crc;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  while (left >= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
    at += 8;
    left -= 8;
  }
  uint32_t tail = static_cast<uint32_t>(state);
  while (left > 0) {
    tail = _mm_crc32_u8(tail, *at);
    ++at;
    --left;
  }
  return ~tail;
}
#endif

}  // namespace

uint32_t crc32c_extend_portable(uint32_t crc, ByteView bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_table();
  uint32_t state = ~crc;
  for (uint8_t byte : bytes) state = (state >> 8) ^ kTable[(state ^ byte) & 0xff];
  return ~state;
}

uint32_t crc32c_extend(uint32_t crc, ByteView bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return extend_sse42(crc, bytes);
#endif
  return crc32c_extend_portable(crc, bytes);
}

uint32_t crc32c_patch(uint32_t crc, ByteView difference, uint64_t bytes_behind) {
  // A CRC is linear but for its inversions, which cancel out between the old and the new message; a zero byte
  // behind multiplies the remainder by x^8.
  uint32_t change = ~crc32c_extend(~0u, difference);
  uint32_t power = 1u << 23;  // x^8
  for (uint64_t left = bytes_behind; left != 0; left >>= 1) {
    if ((left & 1) != 0) change = multiply(change, power);
    power = multiply(power, power);
  }
  return crc ^ change;
}

}  // namespace varve
