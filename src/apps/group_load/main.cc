// The program that measures consumer groups: see docs/performance.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/group_load/group_load.h"

int main(int argc, char** argv) {
  varve::apps::GroupLoadOptions options;
  CLI::App program("Loads a broker of the Kafka protocol with consumer groups and prints what they cost");
  program.add_option("--host", options.host, "Address of the broker, a single node");
  program.add_option("--port", options.port, "Its port");
  program.add_option("--groups", options.groups, "Number of groups");
  program.add_option("--members", options.members, "Members of each group, each on its own connection");
  program.add_option("--seconds", options.seconds, "Length of each phase");
  program.add_option("--in-flight", options.in_flight, "Requests under way in the phases without pauses");
  program.add_option("--heartbeat-ms", options.heartbeat_ms, "Between two heartbeats of a member");
  program.add_option("--commit-ms", options.commit_ms, "Between two commits of a member");
  program.add_option("--broker-pid", options.broker_pid, "Process of the broker, for its processor time");
  program.footer(fmt::format("Beforehand: {}.", varve::apps::kNeeds));
  CLI11_PARSE(program, argc, argv);
  return varve::apps::run_group_load(options);
}
