#include "protocol/message_printer.h"

#include <fmt/format.h>

namespace varve::protocol {

void MessagePrinter::name(std::string_view name) {
  if (!first_) append(", ");
  first_ = false;
  append(name);
  append("=");
}

void MessagePrinter::value(int64_t number) { append(fmt::format_int(number).c_str()); }

void MessagePrinter::value(double number) { append(fmt::format("{}", number)); }

void MessagePrinter::value(ErrorCode code) { append(error_name(code)); }

void MessagePrinter::value(const std::string& text) {
  append("\"");
  for (char c : text) {
    if (full()) break;
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
      text_ += c;
    } else {
      append(fmt::format("\\x{:02x}", static_cast<uint8_t>(c)));
    }
  }
  append("\"");
}

void MessagePrinter::size(size_t bytes) { append(fmt::format("<{} bytes>", bytes)); }

void MessagePrinter::begin(char bracket) {
  append({&bracket, 1});
  first_ = true;
}

void MessagePrinter::end(char bracket) {
  append({&bracket, 1});
  first_ = false;
}

std::string MessagePrinter::take() {
  if (full()) {
    text_.resize(max_bytes_);
    text_ += "...";
  }
  return std::move(text_);
}

}  // namespace varve::protocol
