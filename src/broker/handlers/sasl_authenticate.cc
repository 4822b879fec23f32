#include "broker/handlers/handlers.h"

namespace varve::broker {

// Out of place as SaslHandshake is. What the client brings is not looked at, and nowhere told: it may hold a password.
HandlerTask<protocol::SaslAuthenticateResponse> handle_sasl_authenticate(
    Services& /*services*/, const RequestContext& /*context*/,
    protocol::SaslAuthenticateRequest /*request*/) {
  co_return protocol::SaslAuthenticateResponse{.error_code = protocol::ErrorCode::kIllegalSaslState,
                                               .error_message = "this listener does not authenticate"};
}

}  // namespace varve::broker
