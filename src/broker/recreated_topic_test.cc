// A topic that is deleted and made again while another broker knows only its former life.
#include <gtest/gtest.h>

#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using runtime::Task;

constexpr int64_t kLatest = -1;

class RecreatedTopic : public sim::BrokerFixture {
 protected:
  static broker::Settings with_admin(int32_t id) {
    broker::Settings settings = settings_of(id);
    settings.allow_admin_apis = true;
    return settings;
  }

  // The second broker sleeps through the deletion of "t" and its making, and finds `post` in its socket.
  template <class Post>
  Task<int32_t> make_again_behind_its_back(sim::RawClient& admin, sim::RawClient& client, Post post) {
    brokers_[1]->node().pause();
    auto deleted = co_await admin.ask(sim::delete_request("t"), 5);
    EXPECT_EQ(deleted.responses.at(0).error_code, ErrorCode::kNone);
    auto made = co_await admin.ask(sim::create_request("t", 1), 7);
    EXPECT_EQ(made.topics.at(0).error_code, ErrorCode::kNone);
    int32_t correlation = co_await post(client);
    co_await runtime::sleep_for(1s);
    brokers_[1]->node().resume();
    co_return correlation;
  }
};

TEST_F(RecreatedTopic, IsNotCalledUnknownByABrokerThatMissedIt) {
  add_broker(with_admin(0));
  add_broker(with_admin(1));
  wait_until_serving();
  run([&]() -> Task<> {
    sim::RawClient admin = co_await connect(0);
    sim::RawClient client = co_await connect(1);
    auto made = co_await admin.ask(sim::create_request("t", 1), 7);
    EXPECT_EQ(made.topics.at(0).error_code, ErrorCode::kNone);
    auto known = co_await client.ask(sim::metadata_request({"t"}, false), 12);
    EXPECT_EQ(known.topics.at(0).error_code, ErrorCode::kNone);

    auto post_list = [](sim::RawClient& to) {
      return to.post(sim::list_offsets_request("t", 0, kLatest), 7);
    };
    int32_t listing = co_await make_again_behind_its_back(admin, client, post_list);
    auto listed = co_await client.expect<protocol::ListOffsetsRequest>(listing, 7);
    EXPECT_NE(listed->topics.at(0).partitions.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);

    auto post_batch = [](sim::RawClient& to) {
      return to.post(sim::produce_request("t", {{0, sim::make_batch("v")}}), 9);
    };
    int32_t producing = co_await make_again_behind_its_back(admin, client, post_batch);
    auto produced = co_await client.expect<protocol::ProduceRequest>(producing, 9);
    EXPECT_NE(produced->responses.at(0).partition_responses.at(0).error_code,
              ErrorCode::kUnknownTopicOrPartition);

    auto post_fetch = [](sim::RawClient& to) {
      return to.post(sim::fetch_request("t", Uuid(), {.max_wait_ms = 3'000}), 12);
    };
    int32_t fetching = co_await make_again_behind_its_back(admin, client, post_fetch);
    auto fetched = co_await client.expect<protocol::FetchRequest>(fetching, 12);
    EXPECT_NE(fetched->responses.at(0).partitions.at(0).error_code, ErrorCode::kUnknownTopicOrPartition);
  });
}

}  // namespace
}  // namespace varve::broker
