// Group: one consumer group of the classic protocol, as a state machine without I/O: who is a member, which generation
// it is, who waits for whom.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "broker/group/group_messages.h"
#include "metadata/state/state.h"

namespace varve::broker {

// What a protocol takes beside its strings.
inline constexpr size_t kBytesPerProtocol = 64;

// Of their strings, with kBytesPerProtocol for each.
size_t bytes_of(const std::vector<metadata::GroupProtocol>& protocols);
// Of its strings and protocols.
size_t bytes_of(const metadata::MemberDetails& details);

struct Member {
  std::string id;
  metadata::MemberDetails details;
  std::string assignment;
  // It is in its first join: nobody but the group knows it, and heartbeats cannot come from it.
  bool is_new = false;
  // never(): no heartbeat is expected, the member waits for the group.
  MonotonicTime session_ends = MonotonicTime::never();
  std::optional<JoinReply> join;  // set: it waits there
  std::optional<SyncReply> sync;

  bool is_static() const { return details.instance_id.has_value(); }
  size_t bytes() const;
};

// Follows Apache Kafka's ClassicGroup and GroupMetadataManager, rule by rule. Everything happens at once in memory; what
// has to survive raises revision(), and whoever holds the group must not let an answer out before the revision that it
// came from is stored.
//
// Life: made empty, or loaded from what the metadata log says of it, by the coordinator that holds it. Not thread-safe.
class Group {
 public:
  // What a member or an id takes beside its strings.
  static constexpr size_t kBytesEach = 256;
  // What a member takes in an entry beside its id, if nothing of it has changed.
  static constexpr size_t kEntryBytesPerId = 4;

  Group(std::string id, const GroupConfig& config) : id_(std::move(id)), config_(config) {}
  // As the log has it: nobody waits, and every member has its whole session before it. A group that was waiting for
  // members to join begins to do so anew, one that waited for its leader's assignment goes on waiting.
  Group(const metadata::GroupView& view, const GroupConfig& config, MonotonicTime now);

  const std::string& id() const { return id_; }
  metadata::GroupPhase phase() const { return phase_; }
  int32_t generation() const { return generation_; }
  const std::string& protocol_type() const { return protocol_type_; }
  const std::optional<std::string>& protocol() const { return protocol_; }
  const std::string& leader() const { return leader_; }
  const std::map<std::string, Member>& members() const { return members_; }
  size_t pending_count() const { return pending_.size(); }
  // Nothing of it is in memory only.
  bool is_idle() const { return members_.empty() && pending_.empty(); }
  // Of memory, about: what members brought and were given, and ids.
  size_t bytes() const { return bytes_; }
  // Raised by each change that has to survive.
  uint64_t revision() const { return revision_; }
  // The topics that members subscribe to, if the group is one of consumers and all of them can be read. A group
  // without members subscribes to none.
  std::optional<std::set<std::string>> subscribed_topics() const;

  void join(JoinRequest request, JoinReply reply, MonotonicTime now);
  // kNone: the member is one, in this generation.
  GroupErrc check(const MemberName& member, int32_t generation) const;
  void sync(SyncRequest request, SyncReply reply, MonotonicTime now);
  GroupErrc heartbeat(const MemberName& member, int32_t generation, MonotonicTime now);
  std::vector<GroupErrc> leave(const std::vector<MemberName>& members, MonotonicTime now);
  // A commit is as good as a heartbeat.
  void committed(const MemberName& member, MonotonicTime now);

  // Ends what has waited too long. To be called at next_due(), which may come too early, or later.
  void advance(MonotonicTime now);
  MonotonicTime next_due() const { return next_due_; }
  // The time until now does not count: every deadline begins anew.
  void restart_deadlines(MonotonicTime now);

  // Answers that the calls so far gave to those who wait, in their order.
  using Answer = std::variant<std::pair<JoinReply, JoinAnswer>, std::pair<SyncReply, SyncAnswer>>;
  std::vector<Answer> take_answers() { return std::exchange(answers_, {}); }
  // Gives everybody who waits this error. The group is not to be used after that.
  void fail_waiting(GroupErrc error);

 private:
  using Phase = metadata::GroupPhase;

  struct PendingId {
    Duration session{};
    MonotonicTime ends = MonotonicTime::never();
  };

  // group.cc
  Member* find_member(const std::string& id);
  void remove(const std::string& id);
  bool take_pending(const std::string& id);
  void expect_heartbeat(Member& member, MonotonicTime now);
  void set_due(MonotonicTime& deadline, MonotonicTime when);
  void wait_in_join(Member& member, JoinReply reply);
  void wait_in_sync(Member& member, SyncReply reply);
  void answer(Member& member, JoinAnswer answer);
  void answer(Member& member, SyncAnswer answer);
  bool has_all_joined() const { return pending_.empty() && joined_ == members_.size(); }
  Duration rebalance_timeout() const;
  GroupErrc check_name(const MemberName& member) const;
  // Of what the member is, and before and after what it brings changes.
  void count_in(const Member& member);
  void count_out(const Member& member);

  // group_join.cc
  bool accepts(const std::string& member) const;
  bool supports_protocols(const JoinRequest& request) const;
  const Member* find_known(const JoinRequest& request) const;
  bool fits_into_entry(const JoinRequest& request) const;
  bool fits_into_memory(const JoinRequest& request) const;
  void join_new(JoinRequest request, JoinReply reply, MonotonicTime now);
  void join_known(JoinRequest request, JoinReply reply, MonotonicTime now);
  void give_id(const JoinRequest& request, JoinReply reply, MonotonicTime now);
  void add_member(JoinRequest request, std::string id, JoinReply reply, MonotonicTime now);
  void update_and_rebalance(Member& member, JoinRequest request, JoinReply reply, MonotonicTime now);
  void replace_static(const std::string& old_id, JoinRequest request, JoinReply reply, MonotonicTime now);
  void answer_replaced(Member& member, const std::string& leader_before, bool can_skip_assignment);
  JoinAnswer generation_for(const Member& member, bool with_members) const;
  std::vector<JoinedMember> joined_members() const;

  // group_rebalance.cc
  std::string select_protocol() const;
  bool can_rebalance() const { return phase_ != Phase::kPreparingRebalance; }
  void rebalance_or_complete(MonotonicTime now);
  void prepare_rebalance(MonotonicTime now);
  void complete_if_all_joined(MonotonicTime now);
  void initial_delay_ended(MonotonicTime now);
  void complete_join(MonotonicTime now);
  bool elect_joined_leader();
  void begin_generation(MonotonicTime now);
  void fail_syncs(GroupErrc error, MonotonicTime now);
  void accept_assignments(SyncRequest request, MonotonicTime now);
  void expire_pending(MonotonicTime now);
  void expire_members(MonotonicTime now);
  void expire_missing_syncs(MonotonicTime now);
  void find_next_due();

  std::string id_;
  GroupConfig config_;
  Phase phase_ = Phase::kEmpty;
  int32_t generation_ = 0;
  std::string protocol_type_;
  std::optional<std::string> protocol_;
  std::string leader_;  // "": none
  std::map<std::string, Member> members_;
  std::map<std::string, std::string> static_ids_;  // by instance id
  // How many members support each protocol.
  std::map<std::string, size_t, std::less<>> supporters_;
  std::map<std::string, PendingId> pending_;  // ids given out that have not come back
  std::set<std::string> missing_syncs_;       // members who have not asked for their assignment
  std::vector<Answer> answers_;
  size_t bytes_ = 0;
  size_t id_bytes_ = 0;    // members' ids in an entry
  size_t longest_id_ = 0;  // of those that there were
  size_t joined_ = 0;      // members who wait in a join
  uint64_t revision_ = 0;

  // The group was empty before this rebalance, so more members may be on their way.
  bool is_initial_ = false;
  bool has_newcomer_ = false;    // since the initial delay was last extended
  Duration delay_ = Duration{};  // the one that runs
  Duration delay_left_ = Duration{};
  MonotonicTime join_ends_ = MonotonicTime::never();
  MonotonicTime sync_ends_ = MonotonicTime::never();
  // No deadline is before it.
  MonotonicTime next_due_ = MonotonicTime::never();
};

// Whether offsets may be committed. `group`: nullptr if it is not in memory, so without members; `is_stored`: the state
// knows it. Apply asks the same again of what is stored (GroupChange::judge in metadata/state/apply_group.cc), and has to
// come to the same: a change of the one without the other is a bug, and the other needs a new feature level.
GroupErrc check_commit(const Group* group, bool is_stored, const MemberName& member, int32_t generation);

}  // namespace varve::broker
