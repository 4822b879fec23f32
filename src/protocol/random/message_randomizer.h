// Random field values for generated messages, for tests: short mostly, and often at the edges of the encoding.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/random.h"
#include "protocol/messages/error_code.h"
#include "protocol/slice_chain.h"

namespace varve::protocol {

// Lives for one message.
class MessageRandomizer {
 public:
  explicit MessageRandomizer(Random& random) : random_(random) {}

  bool null() { return random_.chance(1, 4); }
  // A tagged field gets a value at all.
  bool tagged() { return random_.chance(1, 2); }
  // Length of an array; fewer as the message grows, so that deep nesting stays small.
  size_t items();

  void value(bool& out) { out = random_.chance(1, 2); }
  void value(double& out) { out = static_cast<double>(random_.between(-1000, 1000)) / 8; }
  void value(int8_t& out) { out = static_cast<int8_t>(number()); }
  void value(int16_t& out) { out = static_cast<int16_t>(number()); }
  void value(uint16_t& out) { out = static_cast<uint16_t>(number()); }
  void value(int32_t& out) { out = static_cast<int32_t>(number()); }
  void value(uint32_t& out) { out = static_cast<uint32_t>(number()); }
  void value(int64_t& out) { out = number(); }
  template <class T, class Tag>
  void value(Strong<T, Tag>& out) {
    out = Strong<T, Tag>(static_cast<T>(number()));
  }
  void value(ErrorCode& out) { out = static_cast<ErrorCode>(number()); }
  void value(Uuid& out) { out = random_.chance(1, 4) ? Uuid{} : random_.uuid(); }
  void value(std::string& out);
  void value(Slice& out) { out = slice(); }
  void value(SliceChain& out);

 private:
  int64_t number();
  Slice slice();
  size_t size();

  Random& random_;
  size_t total_items_ = 0;
};

}  // namespace varve::protocol
