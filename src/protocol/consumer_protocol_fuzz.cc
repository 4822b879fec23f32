#include "base/check.h"
#include "protocol/consumer_protocol.h"

// Whatever a client calls its subscription: it is read, or it is none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto head = varve::protocol::read_subscription_head({data, size});
  if (!head) return 0;
  size_t bytes = sizeof(int16_t) + sizeof(int32_t);
  for (const std::string& topic : head->topics) bytes += sizeof(int16_t) + topic.size();
  CHECK(bytes == head->bytes && bytes <= size, "a head of {} bytes, which takes {} of {}", bytes, head->bytes,
        size);
  return 0;
}
