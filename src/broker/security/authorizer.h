// Who may do what: the question that each handler asks before it answers, and who answers it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace varve::broker {

// Who asks.
struct Principal {
  std::string type;
  std::string name;

  // Until listeners authenticate, this is everybody, as in Kafka.
  static Principal anonymous() { return {.type = "User", .name = "ANONYMOUS"}; }
};

// Kafka's AclOperation, with its numbers: bit n of a set of authorized operations (KIP-430) is operation n.
enum class Operation : uint8_t {
  kRead = 3,
  kWrite = 4,
  kCreate = 5,
  kDelete = 6,
  kAlter = 7,
  kDescribe = 8,
  kClusterAction = 9,
  kDescribeConfigs = 10,
  kAlterConfigs = 11,
  kIdempotentWrite = 12,
};

// Kafka's ResourceType, with its numbers.
enum class ResourceType : uint8_t { kTopic = 2, kGroup = 3, kCluster = 4, kTransactionalId = 5 };

// The name of the one resource of type kCluster.
inline constexpr std::string_view kClusterName = "kafka-cluster";

struct AccessRequest {
  const Principal& principal;
  std::string_view host;  // of the client
  Operation operation;
  ResourceType type;
  std::string_view name;
};

// Outlives the broker that asks it. Any executor; answers from memory, at once.
class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual bool allows(const AccessRequest& request) const = 0;
  // Whether the principal may do it to some resource of the type (a producer id is given to who may write any topic).
  virtual bool allows_any(const Principal& principal, std::string_view host, Operation operation,
                          ResourceType type) const = 0;
};

// Everybody may do everything.
const Authorizer& allow_everything();

}  // namespace varve::broker
