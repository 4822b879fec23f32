#include "client/assignor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace varve::client {
namespace {

GroupMemberInfo member(std::string id, std::vector<std::string> topics, std::set<TopicPartition> owned = {},
                       int32_t generation = 1) {
  return {std::move(id), std::nullopt, {std::move(topics), std::move(owned), generation}};
}
std::set<TopicPartition> parts(const std::string& topic, std::vector<int32_t> indexes) {
  std::set<TopicPartition> set;
  for (int32_t index : indexes) set.insert({topic, PartitionIndex(index)});
  return set;
}

TEST(RangeAssignor, GivesEachMemberARunAndTheFirstOnesTheRest) {
  Assignment shares =
      assign(Assignor::kRange, {member("b", {"t"}), member("a", {"t"}), member("c", {"t"})}, {{"t", 7}});
  EXPECT_EQ(shares["a"], parts("t", {0, 1, 2}));
  EXPECT_EQ(shares["b"], parts("t", {3, 4}));
  EXPECT_EQ(shares["c"], parts("t", {5, 6}));
}

TEST(RangeAssignor, StaticMembersComeFirstByTheirInstances) {
  GroupMemberInfo first = member("z", {"t"}), second = member("y", {"t"});
  first.instance_id = "1";
  second.instance_id = "2";
  Assignment shares = assign(Assignor::kRange, {member("a", {"t"}), second, first}, {{"t", 3}});
  EXPECT_EQ(shares["z"], parts("t", {0}));
  EXPECT_EQ(shares["y"], parts("t", {1}));
  EXPECT_EQ(shares["a"], parts("t", {2}));
}

TEST(RangeAssignor, OnlyWhoSubscribesTakesPart) {
  Assignment shares =
      assign(Assignor::kRange, {member("a", {"t"}), member("b", {"u"}), member("c", {"gone"})},
             {{"t", 2}, {"u", 1}});
  EXPECT_EQ(shares["a"], parts("t", {0, 1}));
  EXPECT_EQ(shares["b"], parts("u", {0}));
  EXPECT_TRUE(shares.contains("c"));
  EXPECT_TRUE(shares["c"].empty());
}

TEST(CooperativeSticky, WhatIsBalancedStays) {
  Assignment shares =
      assign(Assignor::kCooperativeSticky,
             {member("a", {"t"}, parts("t", {1, 3})), member("b", {"t"}, parts("t", {0, 2}))}, {{"t", 4}});
  EXPECT_EQ(shares["a"], parts("t", {1, 3}));
  EXPECT_EQ(shares["b"], parts("t", {0, 2}));
}

TEST(CooperativeSticky, WhatMovesIsGivenUpFirstAndGivenOutNext) {
  std::vector<GroupMemberInfo> members = {member("a", {"t"}, parts("t", {0, 1, 2, 3})), member("b", {"t"})};
  Assignment first = assign(Assignor::kCooperativeSticky, members, {{"t", 4}});
  EXPECT_EQ(first["a"].size(), 2u);
  EXPECT_TRUE(first["b"].empty());
  members[0].subscription.owned = first["a"];
  Assignment second = assign(Assignor::kCooperativeSticky, members, {{"t", 4}});
  EXPECT_EQ(second["a"], first["a"]);
  EXPECT_EQ(second["b"].size(), 2u);
}

TEST(CooperativeSticky, TheNewestClaimCountsAndTwoOfOneGenerationDoNot) {
  Assignment shares = assign(
      Assignor::kCooperativeSticky,
      {member("a", {"t"}, parts("t", {0, 1}), 5), member("b", {"t"}, parts("t", {0, 1}), 4)}, {{"t", 2}});
  // Not given to b in any case, and not to a while b may still read them.
  EXPECT_TRUE(shares["b"].empty());
  EXPECT_TRUE(shares["a"].empty());
}

// Rounds of rebalances with members that come, go and change what they read.
TEST(CooperativeSticky, EveryHistoryEndsBalancedWithOneOwnerPerPartition) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::map<std::string, uint32_t> topics = {{"t", static_cast<uint32_t>(random.between(1, 9))},
                                              {"u", static_cast<uint32_t>(random.between(0, 9))}};
    std::map<std::string, std::set<TopicPartition>> held;
    for (int round = 0; round < 12; ++round) {
      bool is_quiet = round >= 8;
      std::vector<GroupMemberInfo> members;
      if (!is_quiet) {
        std::string name(1, static_cast<char>('a' + random.below(5)));
        if (random.chance(1, 2))
          held[name];
        else
          held.erase(name);
      }
      if (held.empty()) held["a"];
      for (const auto& [id, owned] : held) members.push_back(member(id, {"t", "u"}, owned, round));
      Assignment shares = assign(Assignor::kCooperativeSticky, members, topics);
      std::map<TopicPartition, std::string> owners;
      for (const auto& [id, share] : shares) {
        for (const TopicPartition& at : share) {
          EXPECT_TRUE(owners.try_emplace(at, id).second) << "two owners of " << at.to_string();
          for (const auto& [other, owned] : held) {
            if (other != id) EXPECT_FALSE(owned.contains(at)) << at.to_string() << " is not given up yet";
          }
        }
      }
      held = shares;
    }
    size_t least = SIZE_MAX, most = 0, all = 0;
    for (const auto& [id, share] : held) {
      least = std::min(least, share.size());
      most = std::max(most, share.size());
      all += share.size();
    }
    EXPECT_EQ(all, topics["t"] + topics["u"]) << seed;
    EXPECT_LE(most, least + 1) << seed;
  }
}

}  // namespace
}  // namespace varve::client
