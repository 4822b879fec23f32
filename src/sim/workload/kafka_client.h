// KafkaClient: what every actor of the workload knows of the cluster, and its connections to it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "protocol/messages/error_code.h"
#include "sim/checkers/history.h"
#include "sim/node.h"
#include "sim/workload/kafka_connection.h"

namespace varve::sim {

inline constexpr uint16_t kKafkaPort = 9092;

// What the actors of one run share. Outlives them all.
struct WorkloadContext {
  World& world;
  Findings& findings;
  TopicBook& topics;
  History& history;
  std::vector<std::string> hosts;  // bootstrap: every broker's
  // Brokers promise batches without a producer id before they have stored them.
  bool has_early_acks = false;
  // No more new work; what is begun is finished.
  bool is_over = false;
  uint64_t connections = 0;
};

struct KnownTopic {
  Uuid id;
  uint32_t partitions = 0;
};

// Life: of an actor, on one executor of a client node. Not restarted: client nodes do not crash.
class KafkaClient {
 public:
  KafkaClient(WorkloadContext& context, Process& process, std::string name);

  WorkloadContext& context() { return context_; }
  const std::string& name() const { return name_; }
  Random& random() { return random_; }
  MonotonicTime now() const { return process_.now(); }
  WallTime wall_now() const { return process_.wall_now(); }
  runtime::Executor& executor() { return process_.io(0); }
  // Of all the actor's tasks; goes with it.
  runtime::TaskScope& scope() { return scope_; }

  const std::string& any_host() { return context_.hosts[random_.below(context_.hosts.size())]; }
  const std::string& other_host(const std::string& host);
  // The open connection to `host`, or a new one; nullptr if there is none within some seconds.
  runtime::Task<std::shared_ptr<KafkaConnection>> connect(std::string host);

  // Asks `host`; nullopt: no answer.
  template <class Request>
  runtime::Task<std::optional<typename Request::Response>> ask(std::string host, Request request,
                                                               int16_t version) {
    auto connection = co_await connect(host);
    if (!connection) co_return std::nullopt;
    co_return co_await KafkaConnection::ask(connection, std::move(request), version, now() + kRequestTimeout);
  }
  // A version of `Request` that is served, from `low` on.
  template <class Request>
  int16_t draw_version(int16_t low = Request::kMinVersion, int16_t high = Request::kMaxVersion) {
    return static_cast<int16_t>(random_.between(low, high));
  }

  // Looks the topic up at `host` (a name is never created by it). nullopt: it is not there, or no answer; what the
  // answer contradicts is a finding.
  runtime::Task<std::optional<KnownTopic>> find_topic(std::string host, std::string topic);

  static constexpr Duration kRequestTimeout = 20s;
  static constexpr Duration kConnectTimeout = 5s;

 private:
  WorkloadContext& context_;
  Process& process_;
  const std::string name_;
  Random random_;
  std::map<std::string, std::shared_ptr<KafkaConnection>> connections_;
  runtime::TaskScope scope_;  // last: its frames use all of the above
};

// For findings: "broker1 to producer 3".
std::string who(const std::string& host, const KafkaClient& client);

}  // namespace varve::sim
