#include "sim/workload/broker_machine.h"

#include "sim/workload/kafka_client.h"

namespace varve::sim {

using runtime::Task;

namespace {

constexpr Duration kSupervisorPause = 1s;
constexpr uint16_t kHttpPort = 9093;

// Shows a broker's log lines in the trace.
class TraceSink final : public LogSink {
 public:
  TraceSink(World& world, std::string host) : world_(world), host_(std::move(host)) {}
  void write(const LogRecord& record) override { world_.trace("{}: {}", host_, format_log_text(record)); }

 private:
  World& world_;
  std::string host_;
};

}  // namespace

broker::Settings simulated_settings(BrokerId id, const std::string& host) {
  broker::Settings settings = broker::default_settings();
  settings.broker_id = id;
  settings.kafka_address = {"", kKafkaPort};
  settings.http_address = {"", kHttpPort};
  settings.advertised = {host, 0};
  settings.allow_admin_apis = true;
  settings.auto_create_topics = false;
  return settings;
}

BrokerMachine::Program::Program(Process& process, const BrokerMachineOptions& options, Logger logger)
    : ground(options.make_ground(process)),
      broker({process, ground->store(), ground->log(), options.commit_interval, options.fence_interval,
              options.snapshot_after_time},
             options.settings, std::move(logger), metrics, options.bugs) {}

BrokerMachine::BrokerMachine(World& world, SimNetwork& network, BrokerMachineOptions options)
    : world_(world),
      options_(std::move(options)),
      node_(world, options_.node, &network),
      sink_(std::make_unique<TraceSink>(world, options_.node.host)) {
  make();
}

BrokerMachine::~BrokerMachine() {
  if (node_.is_up()) node_.crash(CrashKind::kKilled);
  program_.reset();
}

void BrokerMachine::make() {
  Logger logger;
  if (world_.is_tracing()) {
    logger = Logger(*sink_, [&node = node_] { return node.wall_now(); }, LogLevel::kInfo, "broker");
  }
  program_ = std::make_unique<Program>(node_.process(), options_, logger);
  program_->scope.spawn(node_.process().io(0), "broker", run(program_.get()));
}

Task<> BrokerMachine::run(Program* program) {
  uint64_t life = node_.process().life();
  std::string problem = co_await start(program);
  if (!problem.empty()) {
    world_.happened("broker.start_failed");
    problem_ = std::move(problem);
    world_.trace("{} cannot start: {}", host(), problem_);
    start_again_soon(life);
    co_return;
  }
  problem_.clear();
  program->ingest_memory = &program->metrics.gauge("varve_ingest_memory_bytes", "");
  program->cache = &program->metrics.gauge("varve_cache_bytes", "");
  program->is_serving = true;
  auto fatal = co_await program->broker.fatal().wait();
  problem_ = fatal.message;
  world_.happened("broker.ended_by_itself");
  world_.trace("{} ends: {}", host(), fatal.message);
  program->is_serving = false;
  start_again_soon(life);
}

// Why it does not serve; "" if it does.
Task<std::string> BrokerMachine::start(Program* program) {
  auto opened = co_await program->ground->open();
  if (!opened) co_return opened.error();
  auto started = co_await program->broker.start();
  if (!started) co_return started.error().message;
  co_return std::string();
}

void BrokerMachine::restart_gracefully() {
  if (!is_serving() || program_->is_stopping || node_.is_paused()) return;
  program_->is_stopping = true;
  world_.happened("broker.stopped_gracefully");
  program_->scope.spawn(node_.process().io(0), "stop", stop(program_.get()));
}

Task<> BrokerMachine::stop(Program* program) {
  uint64_t life = node_.process().life();
  program->is_serving = false;
  co_await program->broker.stop();
  co_await program->ground->log().close();
  start_again_soon(life);
}

void BrokerMachine::start_again_soon(uint64_t life) {
  world_.after(kSupervisorPause, [this, life] {
    if (!node_.is_up() || node_.process().life() != life) return;
    crash(CrashKind::kKilled);
    boot();
  });
}

metadata::MetadataClient* BrokerMachine::metadata() {
  return is_serving() ? program_->broker.metadata() : nullptr;
}

double BrokerMachine::ingest_memory_bytes() const {
  bool is_known = program_ != nullptr && program_->ingest_memory != nullptr;
  return is_known ? program_->ingest_memory->value() : 0;
}

double BrokerMachine::cache_bytes() const {
  bool is_known = program_ != nullptr && program_->cache != nullptr;
  return is_known ? program_->cache->value() : 0;
}

void BrokerMachine::crash(CrashKind kind) {
  node_.crash(kind);
  program_.reset();
}

void BrokerMachine::boot() {
  node_.boot();
  make();
}

NemesisVictim BrokerMachine::victim() {
  return {.node = &node_, .crash = [this](CrashKind kind) { crash(kind); }, .boot = [this] { boot(); }};
}

}  // namespace varve::sim
