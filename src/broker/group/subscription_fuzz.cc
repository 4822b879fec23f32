#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "broker/group/subscription.h"

// Whatever a client calls its subscription: it is read, or it is none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto topics = varve::broker::read_subscribed_topics(varve::as_text({data, size}));
  size_t bytes = 0;
  if (topics) {
    for (const std::string& topic : *topics) bytes += topic.size();
  }
  CHECK(bytes <= size, "topics of {} bytes out of {}", bytes, size);
  return 0;
}
