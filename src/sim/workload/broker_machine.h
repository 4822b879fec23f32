// BrokerMachine: a broker on a simulated machine, and the supervisor that starts it again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "broker/broker.h"
#include "runtime/task_scope.h"
#include "sim/metadata_log.h"
#include "sim/nemesis.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/object_store.h"

namespace varve::sim {

struct BrokerMachineOptions {
  broker::Settings settings;
  Duration commit_interval = 50ms;
  Duration fence_interval = 5min;
  PlantedBugs bugs{};
  NodeOptions node;
};

// Life: made after network, log and store, destroyed before them. The program is made anew at each boot. A program
// that cannot start, or cannot go on, ends, and is started again a moment later.
class BrokerMachine {
 public:
  BrokerMachine(World& world, SimNetwork& network, SimMetadataLog& log, SimObjectStore& store,
                BrokerMachineOptions options);
  ~BrokerMachine();

  Node& node() { return node_; }
  const std::string& host() const { return node_.host(); }
  bool is_serving() const { return program_ != nullptr && program_->is_serving; }
  // nullptr unless it serves.
  metadata::MetadataClient* metadata();
  // Of the ingest buffer's budget, now.
  double ingest_memory_bytes() const;
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
  runtime::Task<> stop(Program* program);
  // Ends the process and starts the next one.
  void start_again_soon(uint64_t life);

  World& world_;
  SimMetadataLog& log_;
  SimObjectStore& store_;
  const BrokerMachineOptions options_;
  Node node_;
  std::string problem_;
  struct Program {
    Program(Process& process, SimMetadataLog& shared_log, SimObjectStore& shared_store,
            const std::string& host, const BrokerMachineOptions& options, Logger logger);
    MetricRegistry metrics;
    std::unique_ptr<metadata::MetadataLog> log;
    std::unique_ptr<object_store::ObjectStore> store;
    broker::Broker broker;
    bool is_serving = false;
    bool is_stopping = false;
    Gauge* ingest_memory = nullptr;
    runtime::TaskScope scope;  // first to go
  };
  std::unique_ptr<LogSink> sink_;
  std::unique_ptr<Program> program_;
};

}  // namespace varve::sim
