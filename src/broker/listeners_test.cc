// Named listeners and throttling, as clients see them.
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "broker/security/quotas.h"
#include "protocol/messages/describe_cluster.h"
#include "protocol/messages/find_coordinator.h"
#include "protocol/messages/init_producer_id.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;

constexpr uint16_t kInnerPort = 9094;

class ListenersTest : public sim::BrokerFixture {
 protected:
  Task<RawClient> connect_to(uint16_t port) {
    auto stream = co_await client_node_.process().network().connect({"broker0", port}, world_.now() + 10s);
    CHECK(stream, "{}", stream.error().message);
    co_return RawClient(std::move(*stream));
  }
};

TEST_F(ListenersTest, AClientIsToldTheAddressesOfTheListenerItCameThrough) {
  Settings settings = settings_of(0);
  settings.listeners = {{"OUTER", {"", kKafkaPort}, {"outer.example", 19092}},
                        {"INNER", {"", kInnerPort}, {"broker0", 0}}};
  add_broker(settings);
  wait_until_serving();
  run([&]() -> Task<> {
    for (auto [port, host, told] : {std::tuple(kKafkaPort, "outer.example", 19092),
                                    std::tuple(kInnerPort, "broker0", int{kInnerPort})}) {
      RawClient client = co_await connect_to(port);
      auto metadata = co_await client.ask(sim::metadata_request({}), 12);
      EXPECT_EQ(metadata.brokers.at(0).host, host);
      EXPECT_EQ(metadata.brokers.at(0).port, told);
      auto cluster = co_await client.ask(protocol::DescribeClusterRequest(), 1);
      EXPECT_EQ(cluster.brokers.at(0).host, host);
      protocol::FindCoordinatorRequest find;
      find.coordinator_keys = {"g"};
      auto found = co_await client.ask(find, 4);
      EXPECT_EQ(found.coordinators.at(0).host, host);
      EXPECT_EQ(found.coordinators.at(0).port, told);
    }
  });
}

TEST_F(ListenersTest, ACoordinatorThatTheClientCannotReachIsNotAvailable) {
  Settings both = settings_of(0);
  both.listeners = {{"OUTER", {"", kKafkaPort}, {"outer.example", 19092}},
                    {"INNER", {"", kInnerPort}, {"broker0", 0}}};
  add_broker(both);
  Settings inner = settings_of(1);
  inner.listeners = {{"INNER", {"", kInnerPort}, {"broker1", 0}}};
  add_broker(inner);
  wait_until_serving();
  run([&]() -> Task<> {
    protocol::FindCoordinatorRequest find;
    for (int i = 0; i < 10; ++i) find.coordinator_keys.push_back("g" + std::to_string(i));
    auto seen = co_await (co_await connect_to(kInnerPort)).ask(find, 4);
    auto hidden = co_await (co_await connect_to(kKafkaPort)).ask(find, 4);
    std::set<int32_t> owners;
    for (size_t i = 0; i < 10; ++i) {
      BrokerId owner = seen.coordinators.at(i).node_id;
      owners.insert(owner.value());
      bool can_reach = owner == BrokerId(0);
      EXPECT_EQ(hidden.coordinators.at(i).error_code,
                can_reach ? protocol::ErrorCode::kNone : protocol::ErrorCode::kCoordinatorNotAvailable);
      EXPECT_EQ(hidden.coordinators.at(i).node_id, can_reach ? owner : BrokerId(-1));
    }
    EXPECT_EQ(owners.size(), 2u) << "both brokers own some";
  });
}

// Keeps who asked. Of idempotent producers nobody is one everywhere, so that a topic is asked for.
class WhoAsks final : public Authorizer, public ClientQuotas {
 public:
  bool allows(const AccessRequest& request) const override {
    std::lock_guard lock(mutex_);
    asked_by_.insert(text_of(request.principal) + " at " + std::string(request.host));
    return request.operation != Operation::kIdempotentWrite;
  }
  bool allows_any(const Principal& principal, std::string_view host, Operation, ResourceType) const override {
    std::lock_guard lock(mutex_);
    asked_of_any_by_.insert(text_of(principal) + " at " + std::string(host));
    return true;
  }
  Duration charge(const RequestCost& cost, MonotonicTime) override {
    std::lock_guard lock(mutex_);
    charged_.insert(text_of(cost.principal) + " with " + std::string(cost.client_id));
    return 0s;
  }

  using Texts = std::set<std::string>;
  Texts asked_by() const { return copy_of(asked_by_); }
  Texts asked_of_any_by() const { return copy_of(asked_of_any_by_); }
  Texts charged() const { return copy_of(charged_); }

 private:
  static std::string text_of(const Principal& principal) { return principal.type + ":" + principal.name; }
  Texts copy_of(const Texts& texts) const {
    std::lock_guard lock(mutex_);
    return texts;
  }

  mutable std::mutex mutex_;
  mutable Texts asked_by_;
  mutable Texts asked_of_any_by_;
  Texts charged_;
};

// The connection says who asks, nobody else: a handler that passed another one than the context's would pass "".
TEST_F(ListenersTest, AuthorizerAndQuotasHearThePrincipalAndTheClientOfTheRequest) {
  WhoAsks who;
  authorizer_ = &who;
  quotas_ = &who;
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect_to(kKafkaPort);
    co_await client.ask(protocol::DescribeClusterRequest(), 1, "reader");
    auto made = co_await client.ask(sim::create_request("t", 1), 7, "maker");
    EXPECT_EQ(made.topics.at(0).error_code, ErrorCode::kNone);
    protocol::InitProducerIdRequest ids;
    ids.transactional_id = std::nullopt;
    ids.transaction_timeout_ms = 1000;
    co_await client.ask(ids, 4, "maker");
  });
  using Texts = WhoAsks::Texts;
  EXPECT_EQ(who.asked_by(), Texts{"User:ANONYMOUS at client"});
  EXPECT_EQ(who.asked_of_any_by(), Texts{"User:ANONYMOUS at client"});
  EXPECT_EQ(who.charged(), (Texts{"User:ANONYMOUS with maker", "User:ANONYMOUS with reader"}));
}

// A second for each request, whoever asks.
class EverybodyWaits final : public ClientQuotas {
 public:
  Duration charge(const RequestCost& cost, MonotonicTime) override {
    ++requests;
    bytes += cost.request_bytes;
    client_id = cost.client_id;
    return 1s;
  }
  int requests = 0;
  size_t bytes = 0;
  std::string client_id;
};

TEST_F(ListenersTest, AThrottledAnswerSaysSoAndTheNextRequestWaits) {
  EverybodyWaits quotas;
  quotas_ = &quotas;
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect_to(kKafkaPort);
    MonotonicTime begin = world_.now();
    auto first = co_await client.ask(sim::metadata_request({"t"}), 12, "greedy");
    EXPECT_EQ(first.throttle_time_ms, 1000);
    EXPECT_LT(world_.now() - begin, 500ms);
    co_await client.ask(sim::metadata_request({}), 12, "greedy");
    EXPECT_GE(world_.now() - begin, 1s);
    // An answer without the field, and one that is not sent, throttle all the same.
    co_await client.ask(sim::metadata_request({}), 0, "greedy");
    EXPECT_GE(world_.now() - begin, 2s);
    co_await client.ask(sim::metadata_request({}), 12, "greedy");
    EXPECT_GE(world_.now() - begin, 3s);
    co_await client.post(sim::produce_request("t", {{0, sim::make_batch("v")}}, 0), 9, "greedy");
    int32_t behind = co_await client.post(sim::metadata_request({}), 12, "greedy");
    EXPECT_TRUE(co_await client.expect<protocol::MetadataRequest>(behind, 12));
    EXPECT_GE(world_.now() - begin, 5s);
  });
  EXPECT_EQ(quotas.requests, 6);
  EXPECT_GT(quotas.bytes, 0u);
  EXPECT_EQ(quotas.client_id, "greedy");
}

}  // namespace
}  // namespace varve::broker
