// A whole broker: starting, stopping, restarting, and how it treats slow or strange clients.
#include "broker/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/messages/api_versions.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::ProduceRequest;
using runtime::Task;
using sim::BrokerNode;
using sim::FetchSpec;
using sim::make_batch;
using sim::produce_request;
using sim::RawClient;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BrokerTest : public sim::BrokerFixture {
 protected:
  // Makes the topic if need be.
  Task<Offset> produce(RawClient& client, std::string topic, std::string value) {
    co_await client.ask(sim::metadata_request({topic}), 9);
    auto reply = co_await client.ask(produce_request(topic, {{0, make_batch(value)}}), 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    co_return reply.responses.at(0).partition_responses.at(0).base_offset;
  }
  Task<std::string> read_all(RawClient& client, std::string topic) {
    auto reply = co_await client.ask(sim::fetch_request(topic, Uuid{}), 11);
    co_return std::string(as_text(reply.responses.at(0).partitions.at(0).records->joined().view()));
  }
  void stop(BrokerNode& broker) { sim::run_task(world_, broker.process().io(0), broker.broker().stop()); }
  // Status line and body of an answer of the HTTP port.
  Task<std::string> http(std::string path, size_t broker = 0) {
    auto stream = co_await client_node_.process().network().connect({brokers_[broker]->node().host(), 9093},
                                                                    world_.now() + 10s);
    if (!stream) co_return "";
    std::string request = "GET " + path + " HTTP/1.1\r\nConnection: close\r\n\r\n";
    std::vector<ByteView> views = {as_bytes(request)};
    co_await (*stream)->write(views);
    std::string answer;
    std::vector<uint8_t> buffer(4096);
    while (true) {
      auto read = co_await (*stream)->read_some(buffer);
      if (!read || *read == 0) break;
      answer += as_text(ByteView(buffer).first(*read));
    }
    co_return answer;
  }
};

TEST_F(BrokerTest, ARecordIsProducedAndRead) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await produce(client, "t", "hello"), Offset(0));
    EXPECT_THAT(co_await read_all(client, "t"), HasSubstr("hello"));
  });
}

TEST_F(BrokerTest, TenBrokersShareOneLogInOneProcess) {
  start_brokers(10);
  run([&]() -> Task<> {
    for (size_t i = 0; i < 10; ++i) {
      RawClient client = co_await connect(i);
      EXPECT_EQ(co_await produce(client, "t", std::to_string(i)), Offset(static_cast<int64_t>(i)));
    }
    RawClient client = co_await connect(3);
    auto metadata = co_await client.ask(sim::metadata_request({}), 9);
    EXPECT_EQ(metadata.brokers.size(), 10u);
  });
}

TEST_F(BrokerTest, WhatWasAcknowledgedIsThereAfterAKillAndAfterAStop) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await produce(client, "t", "before the kill");
  });
  brokers_[0]->crash();
  brokers_[0]->boot();
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_EQ(co_await produce(client, "t", "before the stop"), Offset(1));
  });
  stop(*brokers_[0]);
  brokers_[0]->crash();
  brokers_[0]->boot();
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_THAT(co_await read_all(client, "t"),
                ::testing::AllOf(HasSubstr("the kill"), HasSubstr("the stop")));
  });
}

TEST_F(BrokerTest, StoppingAnswersProducesAndEndsWaitingFetches) {
  Settings settings = settings_of(0);
  settings.limits.object_attempt_max = settings.limits.object_deadline_max;  // slow PUTs are waited for
  add_broker(settings);
  wait_until_serving();
  runtime::TaskScope scope;
  bool is_sent = false;
  bool is_answered = false;
  bool is_woken = false;
  auto producer = [&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(sim::metadata_request({"t"}), 9);
    // Uploads take seconds, so that the stop comes while they are under way.
    slow_uploads();
    for (int i = 0; i < 20; ++i) co_await client.post(produce_request("t", {{0, make_batch("v")}}), 9);
    is_sent = true;
    for (int32_t id = 2; id <= 21; ++id) {
      auto reply = co_await client.expect<ProduceRequest>(id, 9);
      EXPECT_TRUE(reply) << id;
      if (!reply) co_return;
      EXPECT_EQ(reply->responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone) << id;
    }
    is_answered = true;
  };
  auto waiter = [&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(sim::metadata_request({"quiet"}), 9);
    FetchSpec spec;
    spec.max_wait_ms = 3'600'000;
    auto reply = co_await client.ask(sim::fetch_request("quiet", Uuid{}, spec), 11);
    EXPECT_EQ(reply.responses.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    is_woken = true;
  };
  scope.spawn(client_node_.process().io(0), "producer", producer());
  scope.spawn(client_node_.process().io(1), "waiter", waiter());
  world_.run_until([&] { return is_sent; });
  world_.run_for(500ms);
  EXPECT_FALSE(is_answered);
  MonotonicTime asked = world_.now();
  stop(*brokers_[0]);
  EXPECT_LT(world_.now() - asked, 30s);
  world_.run_until([&] { return scope.size() == 0; });
  EXPECT_TRUE(is_answered);
  EXPECT_TRUE(is_woken);
}

TEST_F(BrokerTest, StoppingTakesNoLongerThanItMayWhateverTheStoreDoes) {
  Settings settings = settings_of(0);
  settings.shutdown_timeout = 3s;
  add_broker(settings);
  wait_until_serving();
  runtime::TaskScope scope;
  auto producer = [&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(sim::metadata_request({"t"}), 9);
    slow_uploads();
    co_await client.post(produce_request("t", {{0, make_batch("v")}}), 9);
    co_await client.receive();
  };
  scope.spawn(client_node_.process().io(0), "producer", producer());
  world_.run_for(1s);
  MonotonicTime asked = world_.now();
  stop(*brokers_[0]);
  EXPECT_LT(world_.now() - asked, 10s);
  world_.run_until([&] { return scope.size() == 0; });
}

TEST_F(BrokerTest, AnAddressInUseFailsTheStartAndIsNamed) {
  start_brokers(1);
  BrokerNode& first = *brokers_[0];
  auto store = store_.client("broker0");
  auto log = log_.client(first.process());
  MetricRegistry metrics;
  Settings settings = settings_of(1);
  settings.http_address.port = 9094;
  auto second =
      std::make_unique<Broker>(BrokerWorld{first.process(), *store, *log, 5ms}, settings, Logger(), metrics);
  std::string problem;
  auto start = [&]() -> Task<> {
    auto started = co_await second->start();
    EXPECT_FALSE(started);
    if (!started) problem = started.error().message;
    co_await second->stop();
  };
  sim::run_task(world_, first.process().io(0), start());
  EXPECT_THAT(problem, HasSubstr(":9092 (KAFSCALE_BROKER_ADDR)"));
}

TEST_F(BrokerTest, AStartThatTakesTooLongHasFailedAndCanBeStopped) {
  sim::LogFaults faults;
  faults.read.request_lost = 1000;
  faults.other.request_lost = 1000;
  log_.set_faults(faults);
  BrokerNode& broker = add_broker(settings_of(0));
  MonotonicTime asked = world_.now();
  world_.run_until([&] { return !broker.problem().empty(); });
  EXPECT_THAT(broker.problem(),
              ::testing::AnyOf(HasSubstr("KAFSCALE_STARTUP_TIMEOUT_SEC"), HasSubstr("no answer")));
  EXPECT_LE(world_.now() - asked, 40s);
  stop(broker);
}

TEST_F(BrokerTest, HealthReadinessAndMetricsAreToldOverHttp) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await produce(client, "t", "v");
    EXPECT_THAT(co_await http("/healthz"),
                ::testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("ok state=healthy")));
    EXPECT_THAT(co_await http("/readyz"), StartsWith("HTTP/1.1 200"));
    std::string metrics = co_await http("/metrics");
    for (const char* name :
         {"kafscale_produce_rps", "kafscale_fetch_rps", "kafscale_produce_latency_ms_bucket",
          "kafscale_broker_uptime_seconds", "varve_requests_total{api=\"Produce\"} 1"}) {
      EXPECT_THAT(metrics, HasSubstr(name));
    }
    EXPECT_THAT(co_await http("/log?after=0&limit=1"), HasSubstr("\r\n\r\n"));
    EXPECT_THAT(co_await http("/log?limit=0"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(co_await http("/nowhere"), StartsWith("HTTP/1.1 404"));
  });
}

TEST_F(BrokerTest, EachStageOfAProduceHasAHistogram) {
  start_brokers(1);
  auto counted = [&](std::string_view series) {
    std::string text = brokers_[0]->metrics().to_prometheus_text();
    size_t at = text.find(series);
    EXPECT_NE(at, std::string::npos) << series;
    return at == std::string::npos ? 0 : std::stoul(text.substr(at + series.size() + 1));
  };
  constexpr std::string_view kBuffer = "varve_produce_stage_seconds_count{stage=\"buffer\"}";
  constexpr std::string_view kPut = "varve_produce_stage_seconds_count{stage=\"put\"}";
  constexpr std::string_view kCommit = "varve_produce_stage_seconds_count{stage=\"commit\"}";
  constexpr std::string_view kApply = "varve_log_apply_seconds_count";
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(sim::metadata_request({"t"}), 9);
    std::map<std::string_view, unsigned long> before;
    for (auto series : {kBuffer, kPut, kCommit, kApply}) before[series] = counted(series);
    for (int i = 0; i < 3; ++i) co_await produce(client, "t", "v");
    for (auto series : {kBuffer, kPut, kCommit, kApply})
      EXPECT_GE(counted(series), before[series] + 3) << series;
  });
}

TEST_F(BrokerTest, WhileItDrainsNobodyNewIsServed) {
  start_brokers(1);
  runtime::TaskScope scope;
  bool is_sent = false;
  bool is_answered = false;
  auto producer = [&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(sim::metadata_request({"t"}), 9);
    slow_uploads();
    int32_t id = co_await client.post(produce_request("t", {{0, make_batch("in flight")}}), 9);
    is_sent = true;
    auto reply = co_await client.expect<ProduceRequest>(id, 9);
    EXPECT_TRUE(reply);
    if (reply) EXPECT_EQ(reply->responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    is_answered = true;
  };
  scope.spawn(client_node_.process().io(0), "producer", producer());
  std::optional<RawClient> idle;
  run([&]() -> Task<> { idle = co_await connect(); });
  world_.run_until([&] { return is_sent; });
  world_.run_for(100ms);
  EXPECT_FALSE(is_answered);
  auto stopping = [&]() -> Task<> { co_await brokers_[0]->broker().stop(); };
  scope.spawn(brokers_[0]->process().io(0), "stop", stopping());
  world_.run_for(50ms);
  EXPECT_FALSE(is_answered) << "the drain goes on";
  run([&]() -> Task<> {
    EXPECT_THAT(co_await http("/readyz"), StartsWith("HTTP/1.1 503"));
    auto refused = co_await client_node_.process().network().connect({brokers_[0]->node().host(), kKafkaPort},
                                                                     world_.now() + 1s);
    EXPECT_FALSE(refused);
    // On a connection from before it is not read any more.
    co_await idle->send(
        protocol::request_frame(produce_request("t", {{0, make_batch("late")}}), 9, 1, "test"));
    EXPECT_TRUE(co_await idle->is_closed());
  });
  EXPECT_FALSE(is_answered);
  world_.run_until([&] { return scope.size() == 0; });
  EXPECT_TRUE(is_answered);
}

TEST_F(BrokerTest, ReadinessFailsAfterThirtySecondsWithoutTheLogAndComesBack) {
  start_brokers(1);
  sim::LogFaults faults;
  faults.append.request_lost = 1000;
  faults.read.request_lost = 1000;
  faults.other.request_lost = 1000;
  log_.set_faults(faults);
  world_.run_for(20s);
  run([&]() -> Task<> { EXPECT_THAT(co_await http("/readyz"), StartsWith("HTTP/1.1 200")); });
  world_.run_for(20s);
  run([&]() -> Task<> {
    EXPECT_THAT(co_await http("/readyz"), StartsWith("HTTP/1.1 503"));
    EXPECT_THAT(co_await http("/healthz"), StartsWith("HTTP/1.1 200"));
  });
  log_.set_faults({});
  world_.run_for(60s);
  run([&]() -> Task<> { EXPECT_THAT(co_await http("/readyz"), StartsWith("HTTP/1.1 200")); });
}

TEST_F(BrokerTest, AFrameThatDoesNotArriveInTimeClosesItsConnectionAndGivesItsMemoryBack) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient slow = co_await connect();
    // The length of 1 MiB, and no more.
    co_await slow.send({Slice::copy_of(std::vector<uint8_t>{0, 0x10, 0, 0})});
    MonotonicTime sent = world_.now();
    EXPECT_TRUE(co_await slow.is_closed());
    EXPECT_GE(world_.now() - sent, 30s);
    EXPECT_LT(world_.now() - sent, 60s);
  });
  EXPECT_THAT(brokers_[0]->metrics().to_prometheus_text(), HasSubstr("varve_request_memory_bytes 0\n"));
}

TEST_F(BrokerTest, AClientThatReadsNothingIsCutAndHoldsNobodyUp) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    for (int i = 0; i < 20; ++i) co_await produce(client, "t", std::string(900'000, 'x'));
    RawClient deaf = co_await connect();
    for (int i = 0; i < 5; ++i)
      co_await deaf.post(sim::fetch_request("t", Uuid{}, {.partition_bytes = 50 << 20}), 11);
    network_.set_isolated("client", true);
    co_await runtime::sleep_for(200s);
    network_.heal();
    RawClient other = co_await connect();
    EXPECT_EQ(co_await produce(other, "t", "v"), Offset(20));
  });
  world_.run_for(100s);
  EXPECT_THAT(brokers_[0]->metrics().to_prometheus_text(), HasSubstr("varve_reply_waiting_bytes 0\n"));
}

TEST_F(BrokerTest, WithoutSyncFlushPlainBatchesAreAcknowledgedFromMemoryAndStoredSoon) {
  Settings settings = settings_of(0);
  settings.produce_sync_flush = false;
  settings.flush_interval = 500ms;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(sim::metadata_request({"t"}), 9);
    size_t objects = store_.objects().size();
    auto reply = co_await client.ask(produce_request("t", {{0, make_batch("early")}}), 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).base_offset, Offset(-1));
    EXPECT_EQ(store_.objects().size(), objects);
    co_await runtime::sleep_for(2s);
    EXPECT_THAT(co_await read_all(client, "t"), HasSubstr("early"));
    // What must not come twice waits for its commit.
    auto batch = sim::idempotent_batch(ProducerId(7), 0);
    reply = co_await client.ask(produce_request("t", {{0, batch}}), 9);
    EXPECT_EQ(reply.responses.at(0).partition_responses.at(0).base_offset, Offset(1));
  });
}

}  // namespace
}  // namespace varve::broker
