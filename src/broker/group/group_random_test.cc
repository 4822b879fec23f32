// Random clients against one group: whatever they do, everybody is answered, those of one generation are told the same,
// and what is stored of it is judged as what is in memory.
#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "broker/group/group_save.h"
#include "broker/group/group_testing.h"
#include "metadata/state/state_testing.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;

class RandomGroupTest : public GroupTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  using Assignments = std::map<std::string, std::string>;
  // Of one generation. Members by place: a static one that starts again is the same.
  struct Told {
    std::optional<std::string> protocol;
    std::string leader;
    std::map<std::string, std::string> members;  // their metadata, as the leader was told
    std::set<std::string> joined;
  };
  struct AskedSync {
    AwaitedSync awaited;
    std::string place;
    int32_t generation;
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
    std::optional<std::string> instance = fresh.instance;
    joins_.push_back(join(std::move(fresh)));
    if (instance) instances_["m" + std::to_string(ids_)] = *instance;
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
    Assignments by_place;
    for (const auto& [id, known] : group_.members()) {
      if (random_.chance(1, 8)) continue;
      assignments.emplace_back(id, fmt::format("{} for {}", syncs_.size(), id));
      by_place[place_of(id)] = assignments.back().second;
    }
    bool is_assigning = member == group_.leader() && group_.phase() == GroupPhase::kCompletingRebalance;
    auto known = group_.members().find(member);
    MemberName name{member,
                    known == group_.members().end() ? std::nullopt : known->second.details.instance_id};
    int32_t generation = group_.generation();
    syncs_.push_back({sync(name, assignments), place_of(member), generation});
    if (is_assigning && group_.phase() == GroupPhase::kStable) assigned_[generation] = std::move(by_place);
  }
  std::string place_of(const std::string& id) const {
    auto instance = instances_.find(id);
    return instance == instances_.end() ? id : "static " + instance->second;
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
      if (join.get().error == GroupErrc::kNone) check_join(join.get(), told[join.get().generation]);
    }
    for (const auto& [generation, one] : told) {
      if (one.members.empty()) continue;
      for (const std::string& place : one.joined) EXPECT_TRUE(one.members.contains(place)) << place;
    }
    for (const AskedSync& sync : syncs_) {
      ASSERT_TRUE(sync.awaited.has_come());
      if (sync.awaited.get().error != GroupErrc::kNone) continue;
      const Assignments& assigned = assigned_.at(sync.generation);
      auto own = assigned.find(sync.place);
      EXPECT_EQ(sync.awaited.get().assignment, own == assigned.end() ? "" : own->second);
    }
  }
  void check_join(const JoinAnswer& answer, Told& told) {
    if (told.leader.empty()) {
      told.protocol = answer.protocol;
      told.leader = place_of(answer.leader);
    }
    EXPECT_EQ(told.protocol, answer.protocol);
    EXPECT_EQ(told.leader, place_of(answer.leader));
    told.joined.insert(place_of(answer.member));
    std::map<std::string, std::string> members;
    for (const JoinedMember& member : answer.members) members[place_of(member.id)] = member.metadata;
    if (members.empty()) return;
    EXPECT_EQ(place_of(answer.member), told.leader);
    EXPECT_EQ(members.size(), answer.members.size());
    if (told.members.empty()) told.members = members;
    EXPECT_EQ(told.members, members);
  }

  // All of it, in as many entries as it takes.
  const metadata::GroupView& save() {
    for (bool is_complete = false; !is_complete;) {
      SaveStep step = next_save(group_, log_.state.find_group("g"), 1'000);
      is_complete = step.is_complete;
      EXPECT_EQ(log_.propose(broker_, step.command).verdict, metadata::CommandVerdict::kDone);
    }
    return *log_.state.find_group("g");
  }
  // What apply says of a commit.
  GroupErrc commit(const MemberName& member, int32_t generation) {
    metadata::CommitOffsets command{.group = "g", .generation = generation, .member = member.id};
    command.instance_id = member.instance;
    command.offsets = {{partition_, 1, -1, ""}};
    return error_of(log_.propose(broker_, command).verdict);
  }
  bool is_of_newcomer(const std::optional<std::string>& instance) const {
    return instance && std::ranges::any_of(group_.members(), [&](const auto& one) {
             return one.second.is_new && one.second.details.instance_id == instance;
           });
  }

  Random random_{GetParam()};
  int32_t generation_ = 0;
  std::vector<AwaitedJoin> joins_;
  std::vector<AskedSync> syncs_;
  std::map<std::string, std::string> instances_;  // by member id
  std::map<int32_t, Assignments> assigned_;       // by generation
  metadata::StateDriver log_;
  Incarnation broker_ = log_.register_broker(1);
  PartitionHandle partition_ = log_.create_topic(broker_, "t").at(0);
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
  for (int i = 0; i < 500; ++i) {
    step();
    Group loaded(save(), config(), now_);
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

// The rules of a commit stand in memory and in apply.
TEST_P(RandomGroupTest, ACommitIsJudgedInMemoryAsApplyJudgesIt) {
  std::set<GroupErrc> seen;
  for (int i = 0; i < 500; ++i) {
    step();
    GroupPhase stored = save().phase;
    const Group* in_memory = group_.is_idle() && group_.phase() == GroupPhase::kEmpty ? nullptr : &group_;
    for (int j = 0; j < 20; ++j) {
      MemberName name{random_.chance(1, 4) ? "" : any_member(), std::nullopt};
      auto known = group_.members().find(name.id);
      if (known != group_.members().end()) name.instance = known->second.details.instance_id;
      if (random_.chance(1, 4)) name.instance = std::string(1, static_cast<char>('a' + random_.below(3)));
      if (is_of_newcomer(name.instance)) continue;
      int32_t generation =
          random_.chance(1, 2) ? group_.generation() : static_cast<int32_t>(random_.below(3)) - 1;
      GroupErrc error = check_commit(in_memory, true, name, generation);
      bool is_forming = stored == GroupPhase::kEmpty && group_.phase() != GroupPhase::kEmpty;
      if (generation < 0 && is_forming) {
        // Of those who come for the first time only memory knows; with them it is not for everybody any more.
        EXPECT_EQ(error, GroupErrc::kUnknownMember);
      } else {
        EXPECT_EQ(error, commit(name, generation)) << name.id << " in " << generation;
        seen.insert(error);
      }
    }
  }
  EXPECT_EQ(seen, (std::set{GroupErrc::kNone, GroupErrc::kUnknownMember, GroupErrc::kIllegalGeneration,
                            GroupErrc::kFencedInstance, GroupErrc::kRebalanceInProgress}));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGroupTest, ::testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace varve::broker
