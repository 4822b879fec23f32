// The consumer protocol's subscription: the one kind of member metadata whose inside the coordinator looks at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::broker {

inline constexpr std::string_view kConsumerProtocolType = "consumer";

// The topics of a subscription: version int16, then an array of strings (ConsumerProtocolSubscription, version 0, which
// begins all later ones). nullopt: these bytes are none.
std::optional<std::vector<std::string>> read_subscribed_topics(std::string_view metadata);

}  // namespace varve::broker
