// Consumer groups without records: members that join, heartbeat and commit, to measure what that costs a broker.
#pragma once

#include <cstdint>
#include <string>

namespace varve::apps {

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

// Prints a line for each phase. The program's exit code: 0 if every request was answered without an error.
int run_group_load(const GroupLoadOptions& options);

}  // namespace varve::apps
