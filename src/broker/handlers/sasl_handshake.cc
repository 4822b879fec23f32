#include "broker/handlers/handlers.h"

namespace varve::broker {

// No listener has SASL, so it is out of place, and names no mechanisms, as in Kafka.
HandlerTask<protocol::SaslHandshakeResponse> handle_sasl_handshake(
    Services& /*services*/, const RequestContext& /*context*/, protocol::SaslHandshakeRequest /*request*/) {
  co_return protocol::SaslHandshakeResponse{.error_code = protocol::ErrorCode::kIllegalSaslState};
}

}  // namespace varve::broker
