// Writes a message as one line of text for logs. Secrets and payloads never appear: bytes and records are shown by
// their size, fields marked secret in the schema as "***".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "protocol/messages/error_code.h"
#include "protocol/slice_chain.h"

namespace varve::protocol {

// Stops at max_bytes, however large the message, and ends the text with "...". Lives for one message.
class MessagePrinter {
 public:
  explicit MessagePrinter(size_t max_bytes) : max_bytes_(max_bytes) {}

  bool full() const { return text_.size() >= max_bytes_; }
  void name(std::string_view name);

  void value(int64_t number);
  void value(uint16_t number) { value(int64_t{number}); }
  void value(uint32_t number) { value(int64_t{number}); }
  void value(int32_t number) { value(int64_t{number}); }
  void value(int16_t number) { value(int64_t{number}); }
  void value(int8_t number) { value(int64_t{number}); }
  void value(bool flag) { append(flag ? "true" : "false"); }
  void value(double number);
  void value(ErrorCode code);
  void value(const Uuid& id) { append(id.to_string()); }
  template <class T, class Tag>
  void value(Strong<T, Tag> id) {
    value(id.value());
  }
  // Quoted; bytes that are not printable ASCII as \xNN.
  void value(const std::string& text);
  void value(const Slice& bytes) { size(bytes.size()); }
  void value(const SliceChain& records) { size(records.size()); }
  template <class T>
    requires requires(const T& item, MessagePrinter& printer) { item.print(printer); }
  void value(const T& item) {
    begin('{');
    item.print(*this);
    end('}');
  }
  template <class T>
  void value(const std::vector<T>& items) {
    begin('[');
    for (size_t i = 0; i < items.size() && !full(); ++i) {
      if (i > 0) append(", ");
      value(items[i]);
    }
    end(']');
  }
  template <class T>
  void value(const std::optional<T>& item) {
    if (item) {
      value(*item);
    } else {
      append("null");
    }
  }
  void secret() { append("***"); }

  std::string take();

 private:
  void begin(char bracket);
  void end(char bracket);
  void size(size_t bytes);
  void append(std::string_view text) {
    if (!full()) text_ += text;
  }

  size_t max_bytes_;
  std::string text_;
  bool first_ = true;
};

// The text of a generated message.
template <class Message>
std::string to_string(const Message& message, size_t max_bytes = 2048) {
  MessagePrinter printer(max_bytes);
  printer.value(message);
  return printer.take();
}

}  // namespace varve::protocol
