#include "metadata/state/object_key.h"

#include <charconv>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace varve::metadata {
namespace {

constexpr std::string_view kFolder = "/_wal/";

std::string stem(const WalObjectName& name) {
  return fmt::format("{:016x}-{}-{:016x}-{:016x}", name.epoch.value(), to_hex(name.log_id.bytes),
                     name.nonce.value(), name.number.value());
}

bool parse_hex(std::string_view text, uint64_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string wal_key(std::string_view prefix, const WalObjectName& name) {
  std::string file = stem(name);
  return fmt::format("{}{}{:02x}/{}", prefix, kFolder, crc32c(as_bytes(file)) & 0xff, file);
}

std::optional<WalObjectName> parse_wal_key(std::string_view prefix, std::string_view key) {
  constexpr size_t kStemSize = 16 + 1 + 32 + 1 + 16 + 1 + 16;
  if (key.size() != prefix.size() + kFolder.size() + 3 + kStemSize || !key.starts_with(prefix))
    return std::nullopt;
  std::string_view file = key.substr(key.size() - kStemSize);
  WalObjectName name;
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  uint64_t number = 0;
  if (!parse_hex(file.substr(0, 16), epoch) || !parse_hex(file.substr(50, 16), nonce) ||
      !parse_hex(file.substr(67, 16), number)) {
    return std::nullopt;
  }
  for (size_t i = 0; i < name.log_id.bytes.size(); ++i) {
    uint64_t byte = 0;
    if (!parse_hex(file.substr(17 + 2 * i, 2), byte)) return std::nullopt;
    name.log_id.bytes[i] = static_cast<uint8_t>(byte);
  }
  name.epoch = FenceEpoch(epoch);
  name.nonce = Nonce(nonce);
  name.number = ObjectNumber(number);
  // Separators, letter case and the spread digits all have one spelling.
  if (wal_key(prefix, name) != key) return std::nullopt;
  return name;
}

}  // namespace varve::metadata
