// More is produced than the store can take: clients wait, memory stays within its limits, nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using runtime::Task;
using sim::produce_request;
using sim::RawClient;

constexpr int kClients = 20;
constexpr int kRequests = 30;

class FullLoadTest : public sim::BrokerFixture {
 protected:
  // Sends all its requests as fast as they are taken, and reads the replies in another task.
  Task<> flood(int number, runtime::TaskScope* scope) {
    auto client = std::make_shared<RawClient>(co_await connect());
    std::string topic = "t" + std::to_string(number % 3);
    scope->spawn(client_node_.process().io(0), "replies", read_replies(client));
    for (int i = 0; i < kRequests; ++i) {
      ProduceRequest request = produce_request(topic, {{0, sim::make_batch(std::string(10'000, 'x'))}});
      request.timeout_ms = 3'600'000;
      co_await client->post(std::move(request), 9);
    }
  }
  Task<> read_replies(std::shared_ptr<RawClient> client) {
    for (int32_t id = 1; id <= kRequests; ++id) {
      auto reply = co_await client->expect<ProduceRequest>(id, 9);
      EXPECT_TRUE(reply);
      if (!reply) co_return;
      EXPECT_EQ(reply->responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
      ++answered_;
    }
  }

  int answered_ = 0;
};

TEST_F(FullLoadTest, ProducersOfASlowStoreWaitAndMemoryStaysWithinItsLimits) {
  Settings settings = settings_of(0);
  settings.limits.request_memory_bytes_max = 512 * kKiB;
  settings.limits.ingest_memory_bytes_max = 256 * kKiB;
  settings.limits.ingest_buffer_bytes_max = 64 * kKiB;
  settings.limits.uploads_in_flight_max = 4;
  settings.limits.object_attempt_max = settings.limits.object_deadline_max;
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await client.ask(sim::metadata_request({"t0", "t1", "t2"}), 9);
  });
  sim::StoreFaults faults;
  faults.put.slow = 200;
  store_.set_faults(faults);

  MetricRegistry& metrics = brokers_[0]->metrics();
  Gauge& ingest = metrics.gauge("varve_ingest_memory_bytes", "");
  double ingest_max = 0;
  runtime::TaskScope scope;
  for (int i = 0; i < kClients; ++i) {
    scope.spawn(client_node_.process().io(0), "flood", flood(i, &scope));
  }
  double waiting_max = 0;
  Gauge& waiting = metrics.gauge("varve_ingest_requests_waiting", "");
  EXPECT_EQ(world_.run_until([&] {
    ingest_max = std::max(ingest_max, ingest.value());
    waiting_max = std::max(waiting_max, waiting.value());
    return scope.size() == 0;
  }),
            sim::RunEnd::kDone);
  EXPECT_EQ(answered_, kClients * kRequests);
  EXPECT_LE(ingest_max, 256 * kKiB);
  EXPECT_GT(ingest_max, 128 * kKiB);
  // What waits for room is in memory as requests only, of which there are as many as the budget allows.
  EXPECT_GT(waiting_max, 0);
  EXPECT_LE(waiting_max, 512 / 10);
  EXPECT_EQ(ingest.value(), 0);
}

}  // namespace
}  // namespace varve::broker
