// What members of consumer groups bring when they join, as far as more than one of our readers looks into it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace varve::protocol {

// The protocol type under which members join whose metadata are subscriptions.
inline constexpr std::string_view kConsumerProtocolType = "consumer";

// A subscription's version and topics, with which every version begins (Kafka's ConsumerProtocolSubscription, 0 to 3).
struct SubscriptionHead {
  int16_t version = 0;
  std::vector<std::string> topics;
  size_t bytes = 0;  // that it takes; what follows depends on the version
};
// nullopt: these bytes are none.
std::optional<SubscriptionHead> read_subscription_head(ByteView subscription);

}  // namespace varve::protocol
