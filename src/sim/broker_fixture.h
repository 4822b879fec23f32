// For tests of a whole broker: one or more of them on simulated machines, and a client that says exactly what the
// test wants to say.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "client/frame_io.h"
#include "protocol/frame.h"
#include "protocol/message_codec.h"
#include "sim/metadata_log.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/object_store.h"
#include "sim/run_task.h"
#include "sim/world.h"

namespace varve::sim {

// A connection of a client that has no state but its socket. Belongs to one executor.
class RawClient {
 public:
  explicit RawClient(std::unique_ptr<runtime::Stream> stream) : stream_(std::move(stream)) {}

  // False: the connection is gone.
  runtime::Task<bool> send(std::vector<Slice> frame) {
    auto written = co_await client::write_frame(*stream_, std::move(frame));
    co_return written.has_value();
  }

  // The next frame without its length; nullopt: the connection was closed.
  runtime::Task<std::optional<Slice>> receive() {
    auto frame = co_await client::read_frame(*stream_, kFrameBytesMax);
    if (!frame) co_return std::nullopt;
    co_return std::move(*frame);
  }

  // Sends without waiting; the correlation id to expect(), or 0 if the connection is gone.
  template <class Request>
  runtime::Task<int32_t> post(Request request, int16_t version, std::string client_id = "test") {
    int32_t id = ++last_id_;
    bool is_sent = co_await send(protocol::request_frame(request, version, id, client_id));
    co_return is_sent ? id : 0;
  }
  // The next reply, which must be the one to `id`; nullopt: the connection was closed.
  template <class Request>
  runtime::Task<std::optional<typename Request::Response>> expect(int32_t id, int16_t version) {
    std::optional<Slice> frame = co_await receive();
    if (!frame) co_return std::nullopt;
    auto body = protocol::parse_response(*frame, protocol::api_info(Request::kApiKey), version, id);
    EXPECT_TRUE(body) << body.error().message;
    if (!body) co_return std::nullopt;
    auto response = protocol::decode_message<typename Request::Response>(*body, version);
    EXPECT_TRUE(response) << response.error().message;
    if (!response) co_return std::nullopt;
    co_return std::move(*response);
  }
  // Asks and waits. A closed connection fails the test.
  template <class Request>
  runtime::Task<typename Request::Response> ask(Request request, int16_t version,
                                                std::string client_id = "test") {
    int32_t id = co_await post(std::move(request), version, std::move(client_id));
    auto response = co_await expect<Request>(id, version);
    EXPECT_TRUE(response) << "the connection was closed";
    co_return response.value_or(typename Request::Response{});
  }
  runtime::Task<bool> is_closed() {
    std::vector<uint8_t> byte(1);
    auto read = co_await stream_->read_some(byte);
    co_return !read || *read == 0;
  }

 private:
  static constexpr size_t kFrameBytesMax = 256 * kMiB;

  std::unique_ptr<runtime::Stream> stream_;
  int32_t last_id_ = 0;
};

// Keeps the text of each line.
class KeptLines final : public LogSink {
 public:
  void write(const LogRecord& record) override { texts.push_back(format_log_text(record)); }
  std::vector<std::string> texts;
};

// One broker on its machine, made anew at each boot.
class BrokerNode {
 public:
  BrokerNode(World& world, SimNetwork& network, SimMetadataLog& log, SimObjectStore& store,
             broker::Settings settings, std::string host, Logger logger = {},
             const broker::Authorizer& authorizer = broker::allow_everything(),
             broker::ClientQuotas* quotas = nullptr)
      : log_(log),
        store_(store),
        settings_(std::move(settings)),
        logger_(std::move(logger)),
        authorizer_(authorizer),
        quotas_(quotas),
        node_(world, {.host = std::move(host)}, &network) {
    make();
  }
  ~BrokerNode() { program_.reset(); }

  Node& node() { return node_; }
  Process& process() { return node_.process(); }
  broker::Broker& broker() { return program_->broker; }
  MetricRegistry& metrics() { return program_->metrics; }
  bool is_serving() const { return program_ && program_->is_serving; }
  // Why it is not.
  const std::string& problem() const { return program_->problem; }

  void crash(CrashKind kind = CrashKind::kKilled) {
    node_.crash(kind);
    program_.reset();
  }
  void boot() {
    node_.boot();
    make();
  }

 private:
  struct Program {
    Program(Process& process, SimMetadataLog& shared_log, SimObjectStore& shared_store,
            const std::string& host, const broker::Settings& settings, const Logger& logger,
            const broker::Authorizer& authorizer, broker::ClientQuotas* quotas)
        : log(shared_log.client(process)),
          store(shared_store.client(host)),
          broker({.runtime = process,
                  .store = *store,
                  .log = *log,
                  .commit_interval = 5ms,
                  .authorizer = authorizer,
                  .quotas = quotas},
                 settings, logger, metrics) {}
    MetricRegistry metrics;
    std::unique_ptr<metadata::MetadataLog> log;
    std::unique_ptr<object_store::ObjectStore> store;
    broker::Broker broker;
    bool is_serving = false;
    std::string problem;
    runtime::TaskScope scope;  // first to go
  };

  void make() {
    program_ = std::make_unique<Program>(node_.process(), log_, store_, node_.host(), settings_, logger_,
                                         authorizer_, quotas_);
    program_->scope.spawn(node_.process().io(0), "start", start(*program_));
  }
  static runtime::Task<> start(Program& program) {
    auto started = co_await program.broker.start();
    program.is_serving = started.has_value();
    if (!started) program.problem = started.error().message;
  }

  SimMetadataLog& log_;
  SimObjectStore& store_;
  const broker::Settings settings_;
  const Logger logger_;
  const broker::Authorizer& authorizer_;
  broker::ClientQuotas* const quotas_;
  Node node_;
  std::unique_ptr<Program> program_;
};

// A cluster without faults, and a machine for clients. Faults are set by the test.
class BrokerFixture : public ::testing::Test {
 protected:
  static constexpr uint16_t kKafkaPort = 9092;

  explicit BrokerFixture(uint64_t seed = 1)
      : world_({.seed = seed}),
        network_(world_),
        store_(world_),
        log_(world_),
        client_node_(world_, {.host = "client"}, &network_) {}

  static broker::Settings settings_of(int32_t id) {
    broker::Settings settings = broker::default_settings();
    settings.broker_id = BrokerId(id);
    settings.kafka_address = {"", kKafkaPort};
    settings.http_address = {"", 9093};
    settings.advertised = {"broker" + std::to_string(id), 0};
    settings.limits.cache_bytes_max = 8 * kMiB;
    return settings;
  }
  // Starts brokers until there are so many, and waits until all serve.
  void start_brokers(size_t count) {
    while (brokers_.size() < count) add_broker(settings_of(static_cast<int32_t>(brokers_.size())));
    wait_until_serving();
  }
  BrokerNode& add_broker(broker::Settings settings) {
    std::string host = "broker" + std::to_string(settings.broker_id.value());
    brokers_.push_back(std::make_unique<BrokerNode>(world_, network_, log_, store_, std::move(settings), host,
                                                    logger_, *authorizer_, quotas_));
    return *brokers_.back();
  }
  void wait_until_serving() {
    auto settled = [this] {
      return std::ranges::all_of(brokers_, [](const auto& broker) {
        return broker->is_serving() || !broker->problem().empty() || !broker->node().is_up();
      });
    };
    RunEnd end = world_.run_until(settled);
    for (const auto& broker : brokers_) CHECK(broker->problem().empty(), "{}", broker->problem());
    CHECK(end == RunEnd::kDone, "a broker did not start");
  }
  // Starts one more, which takes no changes by the admin APIs.
  void start_closed_broker() {
    broker::Settings settings = settings_of(static_cast<int32_t>(brokers_.size()));
    settings.allow_admin_apis = false;
    add_broker(std::move(settings));
    wait_until_serving();
  }
  // From now on brokers hear of entries so late.
  void slow_log(Duration lag_max) {
    LogFaults faults;
    faults.lag_max = lag_max;
    log_.set_faults(faults);
  }
  // From now on each PUT takes seconds.
  void slow_uploads() {
    StoreFaults faults;
    faults.put.slow = 1000;
    store_.set_faults(faults);
  }
  runtime::Task<RawClient> connect(size_t broker = 0) {
    auto stream = co_await client_node_.process().network().connect(
        {brokers_[broker]->node().host(), kKafkaPort}, world_.now() + 10s);
    CHECK(stream, "{}", stream.error().message);
    co_return RawClient(std::move(*stream));
  }
  // Runs the coroutine function `body` as the client and steps the world until it has ended.
  template <class Body>
  void run(Body body) {
    run_task(world_, client_node_.process().io(0), body());
  }

  World world_;
  SimNetwork network_;
  SimObjectStore store_;
  SimMetadataLog log_;
  Node client_node_;
  // Of brokers added from now on.
  const broker::Authorizer* authorizer_ = &broker::allow_everything();
  broker::ClientQuotas* quotas_ = nullptr;
  KeptLines warnings_;  // of all brokers
  Logger logger_{warnings_, [] { return WallTime(0); }, LogLevel::kWarn, "broker"};
  std::vector<std::unique_ptr<BrokerNode>> brokers_;
};

}  // namespace varve::sim
