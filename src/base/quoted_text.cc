#include "base/quoted_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace varve {
namespace {

constexpr size_t kQuotes = 2;

// Length of the valid UTF-8 sequence at the start of `text`, or 0.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xc2 && lead < 0xe0 ? 2
                  : (lead & 0xf0) == 0xe0       ? 3
                  : lead >= 0xf0 && lead < 0xf5 ? 4
                                                : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and points above U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90)) {
    return 0;
  }
  return length;
}

// The first character of `text` as it stands in quotes; takes it off the text.
void append_character(std::string& out, std::string_view& text) {
  size_t length = utf8_length(text);
  uint8_t c = static_cast<uint8_t>(text[0]);
  if (length == 0) {
    out += "\xef\xbf\xbd";
    length = 1;
  } else if (c == '"' || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c < 0x20 || c == 0x7f) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
  } else {
    out += text.substr(0, length);
  }
  text.remove_prefix(length);
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) append_character(out, text);
  out += '"';
}

size_t quoted_bytes(std::string_view text) {
  std::string quoted;
  append_quoted(quoted, text);
  return quoted.size();
}

std::string_view quotable_beginning(std::string_view text, size_t bytes_max) {
  std::string quoted;
  for (std::string_view rest = text; !rest.empty();) {
    size_t taken = text.size() - rest.size();
    append_character(quoted, rest);
    if (quoted.size() + kQuotes > bytes_max) return text.substr(0, taken);
  }
  return text;
}

}  // namespace varve
