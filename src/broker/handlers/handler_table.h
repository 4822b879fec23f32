// The table of handlers, and the way from a request's bytes to a reply's.
#pragma once

#include <map>
#include <memory>

#include "broker/handlers/authorization.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {

// Decodes, calls the API's handler, encodes; traces and measures. Owned by the broker; any number of executors.
class HandlerTable final : public RequestHandler {
 public:
  explicit HandlerTable(Services& services);
  ~HandlerTable() override;

  // What the API asks the authorizer for first; nullopt: nothing, or it is not served.
  static std::optional<Access> access_of(protocol::ApiKey key);

  runtime::Task<Reply> handle(RequestContext context, protocol::RequestFrame request) override;

 private:
  struct Row;
  struct Meters;

  Services& services_;
  std::map<protocol::ApiKey, Meters> meters_;
};

}  // namespace varve::broker
