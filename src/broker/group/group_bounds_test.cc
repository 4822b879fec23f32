// What a group lets its members bring, and what it refuses.
#include <gtest/gtest.h>

#include <ctime>

#include "broker/group/group_testing.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;
using GroupBoundsTest = GroupTest;

// The protocols of a stranger are compared with those of all members: in less than the product of both.
TEST_F(GroupBoundsTest, OfManyProtocolsItDoesNotTakeLong) {
  auto many = [](std::string prefix, size_t count) {
    std::vector<metadata::GroupProtocol> protocols;
    for (size_t i = 0; i < count; ++i) protocols.push_back({prefix + std::to_string(i), ""});
    return protocols;
  };
  Group group("g", {.member_bytes_max = SIZE_MAX, .names_bytes_max = SIZE_MAX});
  std::clock_t started = std::clock();
  for (const char* prefix : {"a", "b"}) {
    JoinRequest one = request("", many(prefix, 20'000));
    one.fresh_id = prefix;
    group.join(std::move(one), [](JoinAnswer) {}, now_);
  }
  EXPECT_LT(std::clock() - started, CLOCKS_PER_SEC / 2);
}

TEST_F(GroupBoundsTest, AProtocolWithoutBytesOfItsOwnTakesRoomToo) {
  std::vector<metadata::GroupProtocol> nameless(1'000'000);
  EXPECT_EQ(join(request("", nameless)).get().error, GroupErrc::kUnknownServerError);
}

TEST_F(GroupBoundsTest, WhoDoesNotFitIntoAnEntryBesideTheOthersIsTurnedAway) {
  GroupConfig narrow = config();
  // The group's name, the type, "range", and three ids, the longest once more as that of the leader.
  narrow.names_bytes_max = 1 + 8 + 5 + 3 * (2 + Group::kEntryBytesPerId) + 2;
  group_ = Group("g", narrow);
  auto ids = stable(3);
  JoinRequest dynamic = request();
  dynamic.needs_known_id = true;
  EXPECT_EQ(join(dynamic).get().error, GroupErrc::kGroupMaxSizeReached);
  EXPECT_EQ(join(request()).get().error, GroupErrc::kGroupMaxSizeReached);
  EXPECT_EQ(group_.phase(), GroupPhase::kStable) << "the others notice nothing";
  EXPECT_EQ(join(request("m1", {{"a longer name", ""}, {"range", ""}})).get().error,
            GroupErrc::kGroupMaxSizeReached);
  leave({{"m2", std::nullopt}});
  AwaitedJoin again = join(request("m1"));
  join(request("m3"));
  EXPECT_EQ(again.get().generation, 2);
}

TEST_F(GroupBoundsTest, NobodyBringsOrIsGivenMoreThanThereIsRoomFor) {
  auto big = [&](std::string member, size_t bytes, size_t room) {
    JoinRequest one = request(std::move(member), {{"range", std::string(bytes, 'x')}});
    one.bytes_room = room;
    return one;
  };
  JoinRequest dynamic = big("", 10, 1'000);
  dynamic.needs_known_id = true;
  std::string id = join(dynamic).get().member;
  EXPECT_EQ(join(big(id, 600, 500)).get().error, GroupErrc::kCoordinatorNotAvailable)
      << "with an id that was given out, too";
  AwaitedJoin joined = join(big(id, 600, 2'000));
  pass(10s);
  EXPECT_EQ(joined.get().error, GroupErrc::kNone);
  SyncRequest assigning{.group = "g", .member = {id, std::nullopt}, .generation = 1};
  assigning.assignments = {{id, std::string(600, 'a')}};
  assigning.bytes_room = 599;
  AwaitedSync refused;
  group_.sync(assigning, refused.reply(), now_);
  send();
  EXPECT_EQ(refused.get().error, GroupErrc::kCoordinatorNotAvailable);
  EXPECT_EQ(join(big(id, 700, 0)).get().error, GroupErrc::kCoordinatorNotAvailable);
  EXPECT_EQ(join(big(id, 600, 0)).get().generation, 2) << "no more than before";
  assigning.generation = 2;
  assigning.bytes_room = 600;
  AwaitedSync assigned;
  group_.sync(assigning, assigned.reply(), now_);
  send();
  EXPECT_EQ(assigned.get().assignment.size(), 600u);
}

}  // namespace
}  // namespace varve::broker
