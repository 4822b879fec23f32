#include "protocol/consumer_protocol.h"

namespace varve::protocol {

std::optional<SubscriptionHead> read_subscription_head(ByteView subscription) {
  ByteReader reader(subscription);
  SubscriptionHead head;
  head.version = reader.be<int16_t>();
  auto count = reader.be<int32_t>();
  if (!reader.ok() || head.version < 0 || count < 0) return std::nullopt;
  for (int32_t i = 0; i < count; ++i) {
    auto length = reader.be<int16_t>();
    if (length < 0) return std::nullopt;
    ByteView topic = reader.raw(static_cast<size_t>(length));
    if (!reader.ok()) return std::nullopt;
    head.topics.emplace_back(as_text(topic));
  }
  head.bytes = reader.position();
  return head;
}

}  // namespace varve::protocol
