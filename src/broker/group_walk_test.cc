// Thousands of groups, and brokers that come and go: the core looks through them in parts.
#include "broker/groups_testing.h"

namespace varve::broker {
namespace {

class GroupWalkTest : public GroupsTest {
 protected:
  static constexpr size_t kGroups = 5'000;
  static constexpr size_t kGroupsAtOnce = Limits().groups_per_job_max;

  static metadata::Command save_command(size_t number, uint64_t owners) {
    metadata::SaveGroup save;
    save.group = "g" + std::to_string(number);
    save.protocol_type = "consumer";
    save.phase = metadata::GroupPhase::kStable;
    save.generation = 1;
    save.protocol = "range";
    save.leader = "m";
    save.owners = owners;
    metadata::MemberDetails details{.client_id = "c", .client_host = "/h"};
    details.session_timeout_ms = 300'000;
    details.rebalance_timeout_ms = 300'000;
    details.protocols = {{"range", subscription_to("t")}};
    save.members.push_back({.id = "m", .details = std::move(details), .assignment = "all"});
    return save;
  }
  // One broker, and stable groups of one member each, which it has in memory.
  void start_with_groups() {
    start_brokers(1);
    run([&]() -> Task<> {
      metadata::MetadataClient& client = *brokers_[0]->broker().metadata();
      uint64_t owners = client.state().owners_version();
      for (size_t begin = 0; begin < kGroups; begin += kGroupsAtOnce) {
        std::vector<metadata::Command> commands;
        for (size_t i = begin; i < begin + kGroupsAtOnce; ++i) commands.push_back(save_command(i, owners));
        runtime::Completion<metadata::ProposeResult> done;
        brokers_[0]->process().core().post(
            [&client, &commands, done] { client.propose(std::move(commands), done); });
        metadata::ProposeResult late = fail(metadata::ProposeErrc::kUnknown, "too late");
        auto saved = co_await runtime::wait_until(done, world_.now() + 10s, std::move(late));
        EXPECT_TRUE(saved);
        if (!saved) co_return;
        for (const auto& outcome : *saved) EXPECT_EQ(outcome.verdict, metadata::CommandVerdict::kDone);
      }
    });
    brokers_[0]->crash();
    brokers_[0]->boot();
    watch_until([&] { return in_memory(0) == kGroups; });
  }
  size_t in_memory(size_t broker) {
    if (!brokers_[broker]->is_serving()) return 0;
    Gauge& gauge =
        brokers_[broker]->metrics().gauge("varve_groups", "Consumer groups in this broker's memory");
    return static_cast<size_t>(gauge.value());
  }
  size_t owned(size_t broker) {
    const metadata::State& state = brokers_[broker]->broker().metadata()->state();
    BrokerId id(static_cast<int32_t>(broker));
    return static_cast<size_t>(std::ranges::count_if(
        state.groups(), [&](const auto& one) { return state.group_owner(one.first) == std::optional(id); }));
  }
  // Steps the world, and keeps the most groups that one job took into a broker's memory, or from it.
  template <class Condition>
  void watch_until(Condition condition) {
    std::map<size_t, size_t> before;
    for (size_t i = 0; i < brokers_.size(); ++i) before[i] = in_memory(i);
    auto look = [&] {
      for (size_t i = 0; i < brokers_.size(); ++i) {
        size_t now = in_memory(i);
        size_t& last = before[i];
        // What is loaded before a broker serves is not seen one by one.
        if (last > 0) most_at_once_ = std::max(most_at_once_, now > last ? now - last : last - now);
        last = now;
      }
      return condition();
    };
    EXPECT_EQ(world_.run_until(look), sim::RunEnd::kDone);
  }
  void expect_each_has_its_own() {
    size_t sum = 0;
    for (size_t i = 0; i < brokers_.size(); ++i) {
      EXPECT_EQ(in_memory(i), owned(i)) << "broker " << i;
      sum += in_memory(i);
    }
    EXPECT_EQ(sum, kGroups);
  }

  size_t most_at_once_ = 0;
};

TEST_F(GroupWalkTest, OtherJobsHaveTheirTurnWhileManyGroupsGoToAnotherBroker) {
  start_with_groups();
  add_broker(settings_of(1));
  watch_until(
      [&] { return in_memory(1) > 0 && in_memory(0) + in_memory(1) == kGroups && in_memory(0) == owned(0); });
  expect_each_has_its_own();
  EXPECT_GT(in_memory(0), 2 * kGroupsAtOnce);
  EXPECT_GT(most_at_once_, 0u);
  EXPECT_LE(most_at_once_, kGroupsAtOnce);
  brokers_[1]->crash();
  most_at_once_ = 0;
  watch_until([&] { return in_memory(0) == kGroups; });
  EXPECT_GT(most_at_once_, 0u);
  EXPECT_LE(most_at_once_, kGroupsAtOnce);
}

// A broker that hears late hears of both at once.
TEST_F(GroupWalkTest, AnotherChangeInTheMiddleLeavesNoGroupOut) {
  start_with_groups();
  start_brokers(3);
  run([&]() -> Task<> {
    co_await runtime::sleep_for(1s);
    expect_each_has_its_own();
    uint64_t before = brokers_[1]->broker().metadata()->state().owners_version();
    Incarnation third = brokers_[2]->broker().metadata()->incarnation();
    log_.set_reachable("broker0", false);
    co_await runtime::sleep_for(100ms);
    auto& commands = *brokers_[1]->broker().metadata();
    runtime::Completion<metadata::ProposeResult> done;
    brokers_[1]->process().core().post(
        [&commands, third, done] { commands.propose({metadata::FenceBroker{third}}, done); });
    metadata::ProposeResult late = fail(metadata::ProposeErrc::kUnknown, "too late");
    auto fenced = co_await runtime::wait_until(done, world_.now() + 10s, std::move(late));
    EXPECT_TRUE(fenced);
    co_await runtime::sleep_for(2s);
    EXPECT_GE(brokers_[1]->broker().metadata()->state().owners_version(), before + 2)
        << "it has registered anew";
    EXPECT_EQ(brokers_[0]->broker().metadata()->state().owners_version(), before) << "it has not heard yet";
    log_.set_reachable("broker0", true);
    MonotonicTime late_at = world_.now() + 30s;
    while (brokers_[0]->broker().metadata()->state().owners_version() < before + 2 &&
           world_.now() < late_at) {
      co_await runtime::sleep_for(100ms);
    }
    co_await runtime::sleep_for(1s);
    EXPECT_GE(brokers_[0]->broker().metadata()->state().owners_version(), before + 2);
  });
  expect_each_has_its_own();
}

}  // namespace
}  // namespace varve::broker
