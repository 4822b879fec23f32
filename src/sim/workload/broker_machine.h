// BrokerMachine: a broker on a simulated machine, and the supervisor that starts it again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "broker/broker.h"
#include "runtime/task_scope.h"
#include "sim/nemesis.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/workload/broker_ground.h"

namespace varve::sim {

struct BrokerMachineOptions {
  broker::Settings settings;
  std::function<std::unique_ptr<BrokerGround>(Process& process)> make_ground;
  Duration commit_interval = 50ms;
  Duration fence_interval = 5min;
  Duration snapshot_after_time = 60s;
  PlantedBugs bugs{};
  NodeOptions node;
};

// The settings of a simulated broker; its clients find it under `host`.
broker::Settings simulated_settings(BrokerId id, const std::string& host);

// Life: made after the network and what the grounds refer to, destroyed before them. The program is made anew at each
// boot. A program that cannot start, or cannot go on, ends, and is started again a moment later.
class BrokerMachine {
 public:
  BrokerMachine(World& world, SimNetwork& network, BrokerMachineOptions options);
  ~BrokerMachine();

  Node& node() { return node_; }
  const std::string& host() const { return node_.host(); }
  bool is_serving() const { return program_ != nullptr && program_->is_serving; }
  // nullptr unless it serves.
  metadata::MetadataClient* metadata();
  // What of these budgets is in use now.
  double ingest_memory_bytes() const;
  double cache_bytes() const;
  // Why the last start failed.
  const std::string& problem() const { return problem_; }

  // From an event of the world only.
  void crash(CrashKind kind);
  void boot();
  // As SIGTERM: the program drains and ends, and is started again a moment later.
  void restart_gracefully();
  NemesisVictim victim();

 private:
  struct Program;

  void make();
  runtime::Task<> run(Program* program);
  runtime::Task<std::string> start(Program* program);
  runtime::Task<> stop(Program* program);
  // Ends the process and starts the next one.
  void start_again_soon(uint64_t life);

  World& world_;
  const BrokerMachineOptions options_;
  Node node_;
  std::string problem_;
  struct Program {
    Program(Process& process, const BrokerMachineOptions& options, Logger logger);
    MetricRegistry metrics;
    std::unique_ptr<BrokerGround> ground;
    broker::Broker broker;
    bool is_serving = false;
    bool is_stopping = false;
    Gauge* ingest_memory = nullptr;
    Gauge* cache = nullptr;
    runtime::TaskScope scope;  // first to go
  };
  std::unique_ptr<LogSink> sink_;
  std::unique_ptr<Program> program_;
};

}  // namespace varve::sim
