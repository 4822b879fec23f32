// A whole broker on one disk, as `varve broker` has it, and the disk is full: produce is refused with
// errors that clients try again after, what makes room goes on, and nobody has to act for it to heal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sim/broker_fixture.h"
#include "sim/requests.h"
#include "sim/workload/broker_machine.h"
#include "sim/workload/kafka_client.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;

constexpr uint64_t kReserveBytes = 64 * kMiB;
constexpr uint64_t kBallastBytes = 16 * kMiB;
constexpr uint64_t kDiskBytes = kReserveBytes + kBallastBytes + 32 * kMiB;

class FullDiskTest : public ::testing::Test {
 protected:
  FullDiskTest() {
    disk().set_capacity(kDiskBytes);
    CHECK(world_.run_until([this] { return broker_.is_serving(); }) == sim::RunEnd::kDone);
  }

  static sim::BrokerMachineOptions machine() {
    sim::BrokerMachineOptions options;
    options.settings = sim::simulated_settings(BrokerId(1), "broker");
    options.settings.limits.cache_bytes_max = 8 * kMiB;
    options.commit_interval = 5ms;
    options.fence_interval = 3s;
    options.snapshot_after_time = 2s;
    options.node.host = "broker";
    options.make_ground = [name = options.settings.key_namespace](sim::Process& process) {
      return sim::make_disk_ground(process, name, kBallastBytes);
    };
    return options;
  }
  sim::SimFileSystem& disk() { return broker_.node().disk(); }
  uint64_t free_bytes() { return disk().space("")->free_bytes; }
  bool has_ballast() { return disk().stat("/data/metadata/ballast").has_value(); }

  template <class Body>
  void run(Body body) {
    sim::run_task(world_, client_node_.process().io(0), body());
  }
  Task<RawClient> connect() {
    auto stream =
        co_await client_node_.process().network().connect({"broker", sim::kKafkaPort}, world_.now() + 10s);
    CHECK(stream, "{}", stream.error().message);
    co_return RawClient(std::move(*stream));
  }
  static Task<> create(RawClient& client, std::string topic) {
    auto reply = co_await client.ask(sim::create_request(topic, 1), 7);
    EXPECT_EQ(reply.topics.at(0).error_code, ErrorCode::kNone);
  }
  static Task<ErrorCode> produce(RawClient& client, std::string topic, size_t bytes) {
    auto reply =
        co_await client.ask(sim::produce_request(topic, {{0, sim::make_batch(std::string(bytes, 'x'))}}), 9);
    co_return reply.responses.at(0).partition_responses.at(0).error_code;
  }
  static Task<> delete_topic(RawClient& client, std::string topic) {
    auto reply = co_await client.ask(sim::delete_request(topic), 5);
    EXPECT_EQ(reply.responses.at(0).error_code, ErrorCode::kNone);
  }
  static Task<int64_t> high_watermark(RawClient& client, std::string topic) {
    auto reply = co_await client.ask(sim::fetch_request(topic, Uuid{}), 11);
    EXPECT_EQ(reply.responses.at(0).partitions.at(0).error_code, ErrorCode::kNone);
    EXPECT_FALSE(reply.responses.at(0).partitions.at(0).records->joined().empty());
    co_return reply.responses.at(0).partitions.at(0).high_watermark.value();
  }
  static bool is_refusal(ErrorCode code) {
    return code == ErrorCode::kKafkaStorageError || code == ErrorCode::kNotEnoughReplicas;
  }

  // With one record in `kept`, and `doomed` made.
  Task<RawClient> begin() {
    RawClient client = co_await connect();
    co_await create(client, "kept");
    co_await create(client, "doomed");
    EXPECT_EQ(co_await produce(client, "kept", 10), ErrorCode::kNone);
    co_return client;
  }
  // Fills the disk through `doomed`, and then somebody else takes the reserve.
  Task<> leave_no_byte(RawClient& client) {
    co_await fill(client);
    co_await runtime::sleep_for(5s);
    EXPECT_TRUE(has_ballast());
    disk().set_capacity(kDiskBytes - free_bytes());
    EXPECT_EQ(free_bytes(), 0u);
  }
  // Fills the disk through `doomed` and gives what the refusal was.
  Task<ErrorCode> fill(RawClient& client) {
    for (int i = 0; i < 100; ++i) {
      ErrorCode code = co_await produce(client, "doomed", 1'000'000);
      if (code != ErrorCode::kNone) co_return code;
    }
    co_return ErrorCode::kNone;
  }
  // How long until a record is taken again.
  Task<Duration> healing(RawClient& client) {
    MonotonicTime begin = world_.now();
    while (world_.now() < begin + 10min && co_await produce(client, "kept", 10) != ErrorCode::kNone) {
      co_await runtime::sleep_for(1s);
    }
    co_return world_.now() - begin;
  }

  sim::World world_{{.seed = 1}};
  sim::SimNetwork network_{world_};
  sim::Node client_node_{world_, {.host = "client"}, &network_};
  sim::BrokerMachine broker_{world_, network_, machine()};
};

TEST_F(FullDiskTest, ProduceIsRefusedWithARetriableErrorDeletionWorksAndItHealsByItself) {
  run([&]() -> Task<> {
    RawClient client = co_await begin();
    ErrorCode refusal = co_await fill(client);
    EXPECT_TRUE(is_refusal(refusal)) << static_cast<int>(refusal);
    EXPECT_LE(free_bytes(), kReserveBytes + 2 * kMiB);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(is_refusal(co_await produce(client, "doomed", 1'000'000)));
      co_await runtime::sleep_for(1s);
    }
    EXPECT_GE(free_bytes(), kReserveBytes - 2 * kMiB) << "the reserve is left alone";
    EXPECT_EQ(co_await high_watermark(client, "kept"), 1) << "reading goes on";

    co_await delete_topic(client, "doomed");
    EXPECT_LE(co_await healing(client), 60s);
    EXPECT_EQ(co_await high_watermark(client, "kept"), 2);
  });
  EXPECT_TRUE(broker_.is_serving());
  world_.run_for(60s);
  EXPECT_GE(free_bytes(), kReserveBytes + 20 * kMiB) << "what was deleted is gone";
  EXPECT_TRUE(has_ballast());
}

// Somebody else takes the reserve too: the ballast is what deletion lives on.
TEST_F(FullDiskTest, WithNoByteLeftDeletionStillWorksAndItHealsByItself) {
  run([&]() -> Task<> {
    RawClient client = co_await begin();
    co_await leave_no_byte(client);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(is_refusal(co_await produce(client, "kept", 10)));
      co_await runtime::sleep_for(1s);
    }
    EXPECT_EQ(co_await high_watermark(client, "kept"), 1);
    co_await delete_topic(client, "doomed");
    co_await runtime::sleep_for(60s);
    EXPECT_GE(free_bytes(), 20 * kMiB) << "what was deleted is gone";
    EXPECT_TRUE(is_refusal(co_await produce(client, "kept", 10))) << "the reserve comes first";
    // Whoever took the space gives it back.
    disk().set_capacity(kDiskBytes);
    EXPECT_LE(co_await healing(client), 10s);
    EXPECT_EQ(co_await high_watermark(client, "kept"), 2);
    co_await runtime::sleep_for(5s);
  });
  EXPECT_TRUE(broker_.is_serving());
  EXPECT_TRUE(has_ballast()) << "it was taken again";
}

// A broker that is started on a full disk comes up, serves what it has, and lets topics be deleted.
TEST_F(FullDiskTest, ABrokerStartedOnAFullDiskServesAndDeletes) {
  run([&]() -> Task<> {
    RawClient client = co_await begin();
    co_await leave_no_byte(client);
  });
  broker_.crash(sim::CrashKind::kKilled);
  broker_.boot();
  ASSERT_EQ(world_.run_until([this] { return broker_.is_serving(); }), sim::RunEnd::kDone);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    EXPECT_TRUE(is_refusal(co_await produce(client, "kept", 10)));
    EXPECT_EQ(co_await high_watermark(client, "kept"), 1);
    co_await delete_topic(client, "doomed");
    co_await runtime::sleep_for(60s);
    disk().set_capacity(kDiskBytes);
    EXPECT_LE(co_await healing(client), 60s);
  });
}

}  // namespace
}  // namespace varve::broker
