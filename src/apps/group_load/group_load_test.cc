#include "apps/group_load/group_load.h"

#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::apps {
namespace {

using client::ClientErrc;
using runtime::Task;

class GroupLoadTest : public sim::BrokerFixture {
 protected:
  void start(size_t connections_max) {
    broker::Settings settings = settings_of(0);
    settings.limits.connections_per_address_max = connections_max;
    add_broker(settings);
    wait_until_serving();
  }
  client::ClientResult<void> load() {
    GroupLoadOptions options{.host = "broker0", .groups = 3, .members = 4, .seconds = 1, .in_flight = 5};
    client::ClientResult<void> result;
    run([&]() -> Task<> { result = co_await load_groups(client_node_.process(), options); });
    return result;
  }
};

TEST_F(GroupLoadTest, EveryPhaseOfALoadIsAnsweredWithoutAnError) {
  start(12);
  auto done = load();
  EXPECT_TRUE(done) << done.error().message;
}

TEST_F(GroupLoadTest, ATopicWithTooFewPartitionsEndsItAtOnce) {
  start(12);
  run([&]() -> Task<> {
    sim::RawClient client = co_await connect();
    co_await client.ask(sim::create_request("group-load", 3), 7);
  });
  MonotonicTime begun = world_.now();
  auto done = load();
  ASSERT_FALSE(done);
  EXPECT_EQ(
      done.error().message,
      "topic 'group-load' is there with 3 partitions, and 4 members of a group need one each: delete it");
  EXPECT_LT(world_.now() - begun, 5s);
}

TEST_F(GroupLoadTest, ABrokerThatAllowsTooFewConnectionsIsToldWhatItNeeds) {
  start(11);
  auto done = load();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().cause, ClientErrc::kDisconnected);
  EXPECT_TRUE(done.error().message.starts_with("connection 12 of 12: ")) << done.error().message;
  EXPECT_NE(done.error().message.find("KAFKA_MAX_CONNECTIONS_PER_IP"), std::string::npos);
}

}  // namespace
}  // namespace varve::apps
