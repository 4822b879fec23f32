// Text in quotes, for lines that JSON and a terminal read.
#pragma once

#include <string>
#include <string_view>

namespace varve {

// With the escapes that both need: no byte of `text` can end the line or the quotes. What is not UTF-8 becomes U+FFFD.
void append_quoted(std::string& out, std::string_view text);

// How many bytes it appends.
size_t quoted_bytes(std::string_view text);
// The longest beginning of `text`, in whole characters, that takes at most `bytes_max` in quotes.
std::string_view quotable_beginning(std::string_view text, size_t bytes_max);

}  // namespace varve
