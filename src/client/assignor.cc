#include "client/assignor.h"

#include <algorithm>

namespace varve::client {
namespace {

constexpr std::string_view kRangeName = "range";
constexpr std::string_view kCooperativeStickyName = "cooperative-sticky";

// Static members first, by their instance ids, so that an order outlives their restarts.
bool comes_before(const GroupMemberInfo& a, const GroupMemberInfo& b) {
  if (a.instance_id && b.instance_id) return *a.instance_id < *b.instance_id;
  if (a.instance_id || b.instance_id) return a.instance_id.has_value();
  return a.id < b.id;
}

bool is_subscribed(const GroupMemberInfo& member, const std::string& topic) {
  return std::ranges::find(member.subscription.topics, topic) != member.subscription.topics.end();
}

Assignment assign_ranges(const std::vector<GroupMemberInfo>& members,
                         const std::map<std::string, uint32_t>& partitions) {
  Assignment assignment;
  for (const auto& [topic, count] : partitions) {
    std::vector<const GroupMemberInfo*> takers;
    for (const GroupMemberInfo& member : members) {
      if (is_subscribed(member, topic)) takers.push_back(&member);
    }
    int32_t next = 0;
    for (size_t i = 0; i < takers.size(); ++i) {
      size_t share = count / takers.size() + (i < count % takers.size() ? 1 : 0);
      for (size_t taken = 0; taken < share; ++taken) {
        assignment[takers[i]->id].insert({topic, PartitionIndex(next++)});
      }
    }
  }
  return assignment;
}

struct Claim {
  int32_t generation = -1;
  const GroupMemberInfo* member = nullptr;  // null: two of one generation claim it
};

// Who held what before, by the members' own words: the claim of the newest generation counts, and of two claims of one
// generation none does.
std::map<TopicPartition, Claim> owners_before(const std::vector<GroupMemberInfo>& members) {
  std::map<TopicPartition, Claim> owners;
  for (const GroupMemberInfo& member : members) {
    int32_t generation = member.subscription.generation;
    for (const TopicPartition& at : member.subscription.owned) {
      auto [claim, is_first] = owners.try_emplace(at, Claim{generation, &member});
      if (is_first) continue;
      if (generation > claim->second.generation)
        claim->second = {generation, &member};
      else if (generation == claim->second.generation)
        claim->second.member = nullptr;
    }
  }
  return owners;
}

class StickyShare {
 public:
  StickyShare(const std::vector<GroupMemberInfo>& members, const std::map<std::string, uint32_t>& partitions)
      : members_(members), before_(owners_before(members)) {
    for (const GroupMemberInfo& member : members_) shares_[member.id];
    for (const auto& [topic, count] : partitions) {
      for (uint32_t i = 0; i < count; ++i) all_.push_back({topic, PartitionIndex(static_cast<int32_t>(i))});
    }
  }

  Assignment make() {
    keep_what_was();
    give_out_the_rest();
    balance();
    withhold_what_moves();
    return std::move(shares_);
  }

 private:
  void keep_what_was() {
    for (const TopicPartition& at : all_) {
      auto owner = before_.find(at);
      bool stays = owner != before_.end() && owner->second.member != nullptr &&
                   is_subscribed(*owner->second.member, at.topic);
      if (stays)
        shares_[owner->second.member->id].insert(at);
      else
        free_.push_back(at);
    }
  }
  void give_out_the_rest() {
    for (const TopicPartition& at : free_) {
      const GroupMemberInfo* poorest = poorest_for(at);
      if (poorest != nullptr) shares_[poorest->id].insert(at);
    }
  }
  // Moves one partition at a time from who has two more than a member that could take it.
  void balance() {
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (const GroupMemberInfo& member : members_) {
        std::set<TopicPartition>& share = shares_[member.id];
        // From the back, so that a member keeps its first ones.
        for (auto at = share.rbegin(); at != share.rend(); ++at) {
          const GroupMemberInfo* poorest = poorest_for(*at);
          if (shares_[poorest->id].size() + 1 >= share.size()) continue;
          TopicPartition moved = *at;
          share.erase(moved);
          shares_[poorest->id].insert(std::move(moved));
          has_moved = true;
          break;
        }
      }
    }
  }
  // A member that still holds a partition has to give it up before another gets it, in the next rebalance.
  void withhold_what_moves() {
    for (const GroupMemberInfo& member : members_) {
      std::erase_if(shares_[member.id], [&](const TopicPartition& at) {
        return std::ranges::any_of(members_, [&](const GroupMemberInfo& other) {
          return other.id != member.id && other.subscription.owned.contains(at);
        });
      });
    }
  }
  const GroupMemberInfo* poorest_for(const TopicPartition& at) {
    const GroupMemberInfo* poorest = nullptr;
    for (const GroupMemberInfo& member : members_) {
      if (!is_subscribed(member, at.topic)) continue;
      bool is_poorer = poorest == nullptr || shares_[member.id].size() < shares_[poorest->id].size();
      if (is_poorer) poorest = &member;
    }
    return poorest;
  }

  const std::vector<GroupMemberInfo>& members_;
  std::map<TopicPartition, Claim> before_;
  std::vector<TopicPartition> all_;
  std::vector<TopicPartition> free_;
  Assignment shares_;
};

}  // namespace

std::string_view assignor_name(Assignor assignor) {
  return assignor == Assignor::kRange ? kRangeName : kCooperativeStickyName;
}

std::optional<Assignor> assignor_of_name(std::string_view name) {
  if (name == kRangeName) return Assignor::kRange;
  if (name == kCooperativeStickyName) return Assignor::kCooperativeSticky;
  return std::nullopt;
}

Assignment assign(Assignor assignor, std::vector<GroupMemberInfo> members,
                  const std::map<std::string, uint32_t>& partitions) {
  std::ranges::sort(members, comes_before);
  Assignment assignment = assignor == Assignor::kRange ? assign_ranges(members, partitions)
                                                       : StickyShare(members, partitions).make();
  for (const GroupMemberInfo& member : members) assignment[member.id];
  return assignment;
}

}  // namespace varve::client
