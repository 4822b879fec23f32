#include "protocol/random/vector_line.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace varve::protocol {

namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    size_t end = line.find(' ');
    words.push_back(line.substr(0, end));
    line = end == line.npos ? std::string_view() : line.substr(end + 1);
  }
  return words;
}

std::optional<int16_t> number(std::string_view text) {
  int16_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Slice> from_hex(std::string_view text) {
  if (text == "-") return Slice();
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<uint8_t> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, bytes[i], 16).ptr != digits + 2) return std::nullopt;
  }
  return Slice::take(std::move(bytes));
}

const MessageOps* find_message(int16_t key, bool is_request) {
  for (const MessageOps* ops : all_messages()) {
    if (static_cast<int16_t>(ops->key) == key && ops->is_request == is_request) return ops;
  }
  return nullptr;
}

}  // namespace

std::string check_vector_line(std::string_view line, VectorCounts& counts) {
  std::vector<std::string_view> words = words_of(line);
  if (words.size() != 4 && words.size() != 5) return fmt::format("{} words", words.size());
  auto key = number(words[0]);
  auto version = number(words[2]);
  auto bytes = from_hex(words[3]);
  if (!key || !version || !bytes) return "not a vector line";
  const MessageOps* ops = find_message(*key, words[1] == "request");
  if (ops == nullptr) return "no codec";
  auto again = ops->reencode(*bytes, *version, {});
  if (!again) return fmt::format("{} version {}: {}", ops->name, *version, again.error().message);
  if (*again != *bytes) {
    return fmt::format("{} version {}: {} became {}, read as {}", ops->name, *version, words[3],
                       to_hex(again->view()), ops->print(*bytes, *version, 4096));
  }
  ++counts.messages;
  if (words.size() == 5) {
    auto tagged = from_hex(words[4]);
    if (!tagged || *tagged == *bytes || !ops->equal(*tagged, *bytes, *version)) {
      return fmt::format("{} version {}: not the same with unknown tags", ops->name, *version);
    }
    ++counts.with_unknown_tags;
  }
  return "";
}

std::string random_vector_line(const MessageOps& ops, int16_t version, Random& random) {
  auto bytes = ops.random_bytes(random, version);
  CHECK(bytes.has_value(), "{} version {}: {}", ops.name, version, bytes.error().message);
  return fmt::format("{} {} {} {}", static_cast<int16_t>(ops.key), ops.is_request ? "request" : "response",
                     version, bytes->empty() ? "-" : to_hex(bytes->view()));
}

}  // namespace varve::protocol
