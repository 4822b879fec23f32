// Random clients against one group: whatever they do, everybody is answered, and those of one generation are told the
// same.
#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "broker/group/group_save.h"
#include "broker/group/group_testing.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;

class RandomGroupTest : public GroupTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  struct Told {
    std::optional<std::string> protocol;
  };

  void step() {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return join_new();
      case 2:
      case 3:
      case 4:
        return join_again();
      case 5:
      case 6:
        return sync_one();
      case 7:
        return void(heartbeat(any_member()));
      case 8:
        if (random_.chance(1, 4)) leave({{any_member(), std::nullopt}});
        return;
      default:
        return pass(random_.chance(1, 20) ? Duration(40s)
                                          : Duration(std::chrono::milliseconds(random_.below(4'000))));
    }
  }

  void join_new() {
    JoinRequest fresh = request("", protocols());
    fresh.needs_known_id = random_.chance(1, 2);
    if (random_.chance(1, 3)) fresh.instance = std::string(1, static_cast<char>('a' + random_.below(2)));
    joins_.push_back(join(std::move(fresh)));
  }
  void join_again() {
    JoinRequest again = request(any_member(), protocols());
    auto known = group_.members().find(again.member);
    if (known != group_.members().end()) again.instance = known->second.details.instance_id;
    joins_.push_back(join(std::move(again)));
  }
  void sync_one() {
    std::string member = any_member();
    std::vector<std::pair<std::string, std::string>> assignments;
    for (const auto& [id, known] : group_.members()) assignments.emplace_back(id, "for " + id);
    auto known = group_.members().find(member);
    MemberName name{member,
                    known == group_.members().end() ? std::nullopt : known->second.details.instance_id};
    syncs_.push_back(sync(name, assignments));
  }
  std::vector<metadata::GroupProtocol> protocols() {
    std::vector<metadata::GroupProtocol> listed = {{"x", ""}, {"y", ""}};
    if (random_.chance(1, 2)) std::swap(listed[0], listed[1]);
    if (random_.chance(1, 5)) listed[0].metadata = "changed";
    return listed;
  }
  // A member, an id that was given out, or one of former times.
  std::string any_member() {
    if (group_.members().empty() || random_.chance(1, 4)) return "m" + std::to_string(random_.below(20) + 1);
    auto at = group_.members().begin();
    std::advance(at, static_cast<ptrdiff_t>(random_.below(group_.members().size())));
    return at->first;
  }

  void check() {
    EXPECT_GE(group_.generation(), generation_);
    generation_ = group_.generation();
    if (group_.phase() == GroupPhase::kEmpty) EXPECT_TRUE(group_.members().empty());
    auto waits = [](const auto& one) { return one.second.join.has_value(); };
    EXPECT_LE(std::ranges::count_if(group_.members(), waits), 4);
    if (group_.is_idle()) EXPECT_EQ(group_.bytes(), 0u);
    if (!group_.members().empty()) EXPECT_TRUE(group_.members().contains(group_.leader()));
    for (const auto& [id, member] : group_.members()) {
      if (group_.phase() == GroupPhase::kStable) EXPECT_FALSE(member.join || member.sync);
      if (group_.phase() == GroupPhase::kPreparingRebalance) EXPECT_FALSE(member.sync);
      if (group_.phase() == GroupPhase::kCompletingRebalance) EXPECT_FALSE(member.join);
      bool is_timed = member.session_ends != MonotonicTime::never();
      EXPECT_TRUE(is_timed || member.join || member.sync) << "nothing would ever end " << id;
    }
  }
  void check_answers() {
    std::map<int32_t, Told> told;
    for (const AwaitedJoin& join : joins_) {
      ASSERT_TRUE(join.has_come());
      const JoinAnswer& answer = join.get();
      if (answer.error != GroupErrc::kNone || answer.skip_assignment) continue;
      // A static leader that starts again is told the id of the one before.
      auto [known, is_first] = told.try_emplace(answer.generation);
      if (is_first) known->second.protocol = answer.protocol;
      EXPECT_EQ(known->second.protocol, answer.protocol);
      EXPECT_FALSE(answer.leader.empty());
    }
    for (const AwaitedSync& sync : syncs_) ASSERT_TRUE(sync.has_come());
  }

  Random random_{GetParam()};
  int32_t generation_ = 0;
  std::vector<AwaitedJoin> joins_;
  std::vector<AwaitedSync> syncs_;
};

TEST_P(RandomGroupTest, EverybodyIsAnsweredAndTheGroupEndsEmpty) {
  for (int i = 0; i < 2'000; ++i) {
    step();
    check();
  }
  pass(20min);
  check_answers();
  EXPECT_TRUE(group_.is_idle());
  EXPECT_EQ(group_.phase(), GroupPhase::kEmpty);
}

TEST_P(RandomGroupTest, ALoadedGroupKnowsTheMembersThatTheSavedOneHad) {
  metadata::GroupView view;
  view.id = "g";
  for (int i = 0; i < 500; ++i) {
    step();
    metadata::SaveGroup saved = next_save(group_, nullptr, SIZE_MAX).command;
    view.phase = saved.phase;
    view.generation = saved.generation;
    view.protocol = saved.protocol;
    view.protocol_type = saved.protocol_type;
    view.leader = saved.leader;
    view.members.clear();
    for (const metadata::SavedMember& member : saved.members) {
      view.members[member.id] = {*member.details, member.assignment.value_or("")};
    }
    Group loaded(view, config(), now_);
    for (const auto& [id, member] : group_.members()) {
      MemberName name{id, member.details.instance_id};
      GroupErrc expected = member.is_new ? GroupErrc::kUnknownMember : GroupErrc::kNone;
      EXPECT_EQ(loaded.check(name, group_.generation()), expected);
    }
    if (random_.chance(1, 50)) {
      group_.fail_waiting(GroupErrc::kNotCoordinator);
      send();
      group_ = std::move(loaded);
    }
    check();
  }
  pass(20min);
  check_answers();
  EXPECT_TRUE(group_.is_idle());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGroupTest, ::testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace varve::broker
