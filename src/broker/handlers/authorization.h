// Asking the authorizer on behalf of a request.
#pragma once

#include <optional>
#include <string_view>

#include "broker/handlers/request.h"
#include "broker/handlers/services.h"
#include "broker/security/authorizer.h"

namespace varve::broker {

// What an API asks for first: the authorization column of the table of handlers. Which code a client gets that is not
// allowed to, and for which part of its request, is the handler's to know, as it is in Kafka.
struct Access {
  Operation operation;
  ResourceType type;
};

bool is_allowed(const Services& services, const RequestContext& context, Operation operation,
                ResourceType type, std::string_view name);
bool is_allowed_on_cluster(const Services& services, const RequestContext& context, Operation operation);

// KIP-430: what the client may do to the resource, as bits. Those of its type are asked about one by one.
int32_t authorized_operations(const Services& services, const RequestContext& context, ResourceType type,
                              std::string_view name);
// Of the cluster; none for who may not describe it.
int32_t cluster_operations(const Services& services, const RequestContext& context);

}  // namespace varve::broker
