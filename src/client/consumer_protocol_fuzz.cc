#include "base/check.h"
#include "client/consumer_protocol.h"

// Whatever another member of a group wrote: it is read, and then written and read it is the same; or it is none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace varve;
  Slice bytes = Slice::copy_of({data, size});
  if (auto subscription = client::decode_subscription(bytes)) {
    CHECK(client::decode_subscription(client::encode_subscription(*subscription)) == *subscription);
  }
  if (auto partitions = client::decode_assignment(bytes)) {
    CHECK(client::decode_assignment(client::encode_assignment(*partitions)) == *partitions);
  }
  return 0;
}
