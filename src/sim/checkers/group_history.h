// GroupHistory: what members of consumer groups were told and promised, and whether it fits together.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/consumer_protocol.h"
#include "client/group_offsets.h"
#include "metadata/state/state.h"
#include "sim/checkers/topic_book.h"

namespace varve::sim {

// Of a commit, or of the deletion of a group.
enum class CommitAnswer : uint8_t {
  kNone,     // not yet
  kAcked,    // stored
  kRefused,  // surely not stored
  kUnknown,  // perhaps stored, now or later
};

// What is held of groups (invariant 14):
// - whoever asks for a committed offset after a commit was acknowledged gets it, or a later one; "none", or one of
//   before, only if somebody asked for the deletion of the group or the topic;
// - a commit of a generation is not acknowledged once a member has been given a later one;
// - a member's assignment is what the leader wrote for it, byte for byte, and lies in the log when the member has it;
// - a generation has one set of members, and in it a partition has one owner.
// Life: for one run.
class GroupHistory {
 public:
  // tail: the state at the log's tail, now; empty: what lies in the log is not looked at.
  GroupHistory(const World& world, TopicBook& topics, Findings& findings,
               std::function<const metadata::State&()> tail)
      : world_(world), topics_(topics), findings_(findings), tail_(std::move(tail)) {}

  // One request, before it is sent; then what became of it.
  uint64_t committing(const std::string& group, const client::GroupIdentity& who,
                      const client::Commits& commits);
  void answered(uint64_t commit, CommitAnswer answer);
  // The same of the deletion of a group that has no members.
  uint64_t deleting(const std::string& group);
  void deletion_answered(uint64_t deletion, CommitAnswer answer);
  // An answer to a request for committed offsets that was made at `asked_at`.
  void found(const std::string& group, MonotonicTime asked_at,
             const client::GroupOffsets::Committed& committed, const std::string& who);

  // A leader is about to send these shares. members: instance ids by member id.
  using Members = std::map<std::string, std::optional<std::string>>;
  using Shares = std::map<std::string, Slice>;
  void led(const std::string& group, int32_t generation, const Members& members, const Shares& shares);
  // A member was given its share.
  void joined(const std::string& group, const client::GroupIdentity& who, const Slice& share);

  // It is there, and nobody ever asked to delete a topic of that name.
  bool is_certain(const std::string& topic) const;
  // When a commit of the group was acknowledged last; zero: never.
  MonotonicTime last_acked(const std::string& group) const;
  // The offset committed last, by acknowledged commits; nullopt: none.
  std::optional<Offset> committed(const std::string& group, const client::TopicPartition& at) const;

 private:
  struct Commit {
    std::string group;
    int32_t generation = -1;
    std::map<client::TopicPartition, Offset> offsets;
    MonotonicTime sent;
    MonotonicTime ended = MonotonicTime::never();  // by a clear answer
    CommitAnswer answer = CommitAnswer::kNone;
  };
  // Takes all offsets of a group, or those of a topic's life.
  struct Deletion {
    MonotonicTime sent;
    MonotonicTime ended = MonotonicTime::never();  // by a clear answer
    CommitAnswer answer = CommitAnswer::kNone;
  };
  // One try of a leader to share out a generation.
  struct Sharing {
    std::map<std::string, Slice> by_member;
    std::map<std::string, Slice> by_instance;
  };
  struct Generation {
    std::set<std::string> members;  // by instance id, or else by member id
    std::vector<Sharing> sharings;  // that agree with all who joined
    std::map<client::TopicPartition, std::string> owners;
    MonotonicTime joined_at = MonotonicTime::never();  // by the first member
  };

  void check_offset(const std::string& group, MonotonicTime asked_at, const client::TopicPartition& at,
                    std::optional<Offset> offset, const std::string& who) const;
  bool is_replaced(const Commit& commit, const client::TopicPartition& at, MonotonicTime asked_at) const;
  // That may have been carried out.
  std::vector<Deletion> deletions_of(const std::string& group, const std::string& topic) const;
  void check_stored(const Commit& commit) const;
  void check_stored(const std::string& group, const client::GroupIdentity& who, const Slice& share) const;

  const World& world_;
  TopicBook& topics_;
  Findings& findings_;
  const std::function<const metadata::State&()> tail_;
  std::vector<Commit> commits_;
  std::map<std::pair<std::string, client::TopicPartition>, std::vector<size_t>> commits_of_;
  std::vector<std::pair<std::string, Deletion>> deletions_;  // of groups
  std::map<std::string, MonotonicTime> last_acked_;
  std::map<std::pair<std::string, int32_t>, Generation> generations_;
};

}  // namespace varve::sim
