// Consumer groups without records: members that join, heartbeat and commit, to measure what that costs a broker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/error.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace varve::apps {

// Of the broker.
inline constexpr std::string_view kNeeds =
    "the broker has to allow a connection for each member of each group: max.connections, and "
    "max.connections.per.ip "
    "(varve: KAFKA_MAX_CONNECTIONS and KAFKA_MAX_CONNECTIONS_PER_IP)";

struct GroupLoadOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 9092;
  uint32_t groups = 1000;
  uint32_t members = 10;    // of each group, each on a connection of its own
  uint32_t seconds = 10;    // of each phase
  uint32_t in_flight = 64;  // of the phases without pauses
  uint32_t heartbeat_ms = 3000;
  uint32_t commit_ms = 5000;
  int64_t broker_pid = 0;  // for its processor time; 0: not measured
};

// Prints a line for each phase. Error: why it cannot begin, or of the first request that was not answered well.
// options: outlive the task.
runtime::Task<client::ClientResult<void>> load_groups(runtime::Runtime& runtime,
                                                      const GroupLoadOptions& options);
// The same in a process of its own, whose exit code it returns: 0 if there was no error.
int run_group_load(const GroupLoadOptions& options);

}  // namespace varve::apps
