// GroupCauses: whether every rebalance of a consumer group, and every member that it loses, has a cause.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "client/membership.h"
#include "sim/checkers/log_audit.h"

namespace varve::sim {

// What members did and were told, held against what the log says of their groups (invariant 14):
// - a member that was told that it is one stays one, unless it leaves, is silent for its session, or misses a join or the
//   sync of its generation for as long as a rebalance may wait;
// - a generation of the same members follows another only if somebody came, one of them asked for it by itself, or had
//   to ask again because a join or sync of it failed.
// Life: for one run.
class GroupCauses final : public GroupWatch {
 public:
  GroupCauses(const World& world, Findings& findings) : world_(world), findings_(findings) {}

  // Groups that are not added are left out.
  void add(const std::string& group, Duration session_timeout, Duration rebalance_timeout);

  void asks(const std::string& group, protocol::ApiKey api, const client::GroupIdentity& who);
  void answered(const std::string& group, const client::MembershipAnswer& answer);
  // A member asks for a rebalance by itself.
  void wants_rebalance(const std::string& group) { note_cause(groups_.at(group)); }

  void saved(const metadata::GroupView& view, MonotonicTime at) override;
  void owners_changed(const metadata::State& state, MonotonicTime at) override;

 private:
  struct Member {
    // Since when the last request may have arrived that was answered as a member's; nullopt: none was.
    std::optional<MonotonicTime> heard_at;
    bool has_left = false;
    int32_t synced = -1;  // in this generation it had its assignment last
  };
  struct Group {
    Duration session_timeout;
    Duration rebalance_timeout;
    std::map<std::string, Member> members;  // by instance id, or else by member id
    // The same, of the group as it was saved last.
    std::set<std::string> saved;
    int32_t generation = 0;
    MonotonicTime changed_at;        // since when it is in that
    bool has_other_members = false;  // since then
    MonotonicTime last_cause;
    // No rebalance was going on when a heartbeat was sent then.
    MonotonicTime stable_at;
    std::optional<BrokerId> owner;
    MonotonicTime owner_since;
  };

  void note_cause(Group& group) { group.last_cause = world_.now(); }
  bool may_be_lost(const Group& group, const Member& member, MonotonicTime at) const;

  const World& world_;
  Findings& findings_;
  std::map<std::string, Group> groups_;
};

}  // namespace varve::sim
