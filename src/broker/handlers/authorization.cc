#include "broker/handlers/authorization.h"

#include <span>

namespace varve::broker {
namespace {

// Kafka's AclEntry.supportedOperations.
constexpr Operation kTopicOperations[] = {
    Operation::kRead,     Operation::kWrite,           Operation::kCreate, Operation::kDelete,
    Operation::kDescribe, Operation::kDescribeConfigs, Operation::kAlter,  Operation::kAlterConfigs};
constexpr Operation kGroupOperations[] = {Operation::kRead, Operation::kDescribe, Operation::kDelete,
                                          Operation::kDescribeConfigs, Operation::kAlterConfigs};
constexpr Operation kClusterOperations[] = {Operation::kCreate,          Operation::kAlter,
                                            Operation::kDescribe,        Operation::kClusterAction,
                                            Operation::kDescribeConfigs, Operation::kAlterConfigs,
                                            Operation::kIdempotentWrite};
constexpr Operation kTransactionalIdOperations[] = {Operation::kWrite, Operation::kDescribe};

std::span<const Operation> operations_of(ResourceType type) {
  switch (type) {
    case ResourceType::kTopic:
      return kTopicOperations;
    case ResourceType::kGroup:
      return kGroupOperations;
    case ResourceType::kCluster:
      return kClusterOperations;
    case ResourceType::kTransactionalId:
      return kTransactionalIdOperations;
  }
  return {};
}

}  // namespace

bool is_allowed(const Services& services, const RequestContext& context, Operation operation,
                ResourceType type, std::string_view name) {
  return services.authorizer.allows({context.principal, context.peer.host, operation, type, name});
}

bool is_allowed_on_cluster(const Services& services, const RequestContext& context, Operation operation) {
  return is_allowed(services, context, operation, ResourceType::kCluster, kClusterName);
}

int32_t authorized_operations(const Services& services, const RequestContext& context, ResourceType type,
                              std::string_view name) {
  uint32_t bits = 0;
  for (Operation operation : operations_of(type)) {
    if (is_allowed(services, context, operation, type, name)) bits |= 1u << static_cast<uint32_t>(operation);
  }
  return static_cast<int32_t>(bits);
}

int32_t cluster_operations(const Services& services, const RequestContext& context) {
  if (!is_allowed_on_cluster(services, context, Operation::kDescribe)) return 0;
  return authorized_operations(services, context, ResourceType::kCluster, kClusterName);
}

}  // namespace varve::broker
