// How long a client has to wait before its next request, for what it has used (KIP-124, KIP-219).
#pragma once

#include <cstddef>
#include <string_view>

#include "base/time.h"
#include "broker/security/authorizer.h"
#include "protocol/messages/api_key.h"

namespace varve::broker {

// What one request took. Valid during the call only.
struct RequestCost {
  const Principal& principal;
  std::string_view client_id;
  protocol::ApiKey api;
  size_t request_bytes = 0;
  Duration handling{};  // from arrival to answer, waiting for others included
};

// Outlives the broker that asks it. Any executor; answers from memory, at once.
class ClientQuotas {
 public:
  virtual ~ClientQuotas() = default;
  // Counts the request. The answer says the time as throttle_time_ms, and the connection's next request is not begun
  // before it has passed. Whole milliseconds; 0: no wait.
  virtual Duration charge(const RequestCost& cost, MonotonicTime now) = 0;
};

}  // namespace varve::broker
