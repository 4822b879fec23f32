// GroupConsumer: reads topics together with the other members of its group.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/assignor.h"
#include "client/fetcher.h"
#include "client/group_offsets.h"
#include "client/membership.h"

namespace varve::client {

struct GroupConsumerOptions {
  MembershipOptions member;
  std::vector<std::string> topics;
  Assignor assignor = Assignor::kRange;
  OffsetReset reset = OffsetReset::kLatest;  // where there is no committed offset, or one that is gone
  FetchOptions fetch;
  size_t records_max = 500;       // of one poll
  Duration commit_timeout = 60s;  // tries again for so long
};

// Hears what befalls the member. Called from inside poll() unless it says otherwise.
class GroupListener {
 public:
  virtual ~GroupListener() = default;

  // These partitions go to somebody else next; what was read of them can still be committed.
  virtual runtime::Task<> revoked(std::set<TopicPartition> /*partitions*/) { co_return; }
  // These have come to it; its positions follow with the next poll.
  virtual runtime::Task<> assigned(std::set<TopicPartition> /*partitions*/) { co_return; }
  // These may be somebody else's already. Also from the heartbeats.
  virtual void lost(const std::set<TopicPartition>& /*partitions*/) {}
  // A rebalance has ended for this member.
  virtual void joined(const GroupIdentity& /*who*/, const Membership::Joined& /*joined*/) {}
  // As the leader it is about to send these.
  virtual void led(int32_t /*generation*/, const std::vector<GroupMemberInfo>& /*members*/,
                   const std::map<std::string, Slice>& /*shares*/) {}
  // By itself it asks for a rebalance: its topics have changed, or it gave up what others wait for.
  virtual void wants_rebalance() {}
  // See MembershipDelegate; also from the heartbeats.
  virtual void asks(protocol::ApiKey /*api*/, const GroupIdentity& /*who*/) {}
  virtual void answered(const MembershipAnswer& /*answer*/) {}
  // What the group had committed of partitions that came to it, asked at that time.
  virtual void found(MonotonicTime /*asked_at*/, const GroupOffsets::Committed& /*committed*/) {}
};

// Life: made beside its cluster; poll() again and again, by one task; close(), or destroyed where its tasks cannot run
// any more, as a process that crashes. Rebalances happen inside poll(), heartbeats in a task of their own; who calls
// neither poll() nor commit() for as long as the rebalance timeout leaves the group.
class GroupConsumer : private MembershipDelegate {
 public:
  // listener: may be null; outlives the consumer.
  GroupConsumer(Cluster& cluster, GroupConsumerOptions options, GroupListener* listener = nullptr);

  // Records of the member's partitions, or none after `timeout`, which a rebalance may exceed. What is returned counts
  // as read with the next poll() or commit(). Errors do not pass, except those that is_retriable() says.
  runtime::Task<ClientResult<std::vector<ConsumedRecord>>> poll(Duration timeout);
  // Commits the positions behind everything that was returned. kRefused with kRebalanceInProgress, kIllegalGeneration
  // or kUnknownMemberId: the partitions have to be given up, or are somebody else's; poll() again.
  runtime::Task<ClientResult<void>> commit();
  runtime::Task<ClientResult<void>> commit(Commits commits);
  // What commit() would commit.
  Commits positions() const;
  // Leaves the group at once unless it is a static member; commits nothing.
  runtime::Task<> close();

  const std::set<TopicPartition>& assignment() const { return owned_; }
  // The next poll() takes part in a rebalance.
  bool needs_join() const { return membership_.needs_join(); }
  const GroupIdentity& identity() const { return membership_.identity(); }
  std::optional<Offset> position(const TopicPartition& at) const { return fetcher_.position(at); }

 private:
  std::vector<Protocol> protocols() override;
  runtime::Task<ClientResult<std::map<std::string, Slice>>> assign(int32_t generation, std::string protocol,
                                                                   std::vector<Member> members) override;
  void lost() override;
  void woken() override { fetcher_.wake(); }
  void asks(protocol::ApiKey api, const GroupIdentity& who) override { listener_.asks(api, who); }
  void answered(const MembershipAnswer& answer) override { listener_.answered(answer); }

  runtime::Task<ClientResult<std::vector<ConsumedRecord>>> poll_until(MonotonicTime until);
  runtime::Task<ClientResult<void>> rejoin();
  void want_rebalance();
  runtime::Task<> give_up(std::set<TopicPartition> partitions);
  runtime::Task<ClientResult<void>> locate();
  runtime::Task<ClientResult<void>> reset(TopicPartition at);
  void gather_astray();
  // As the leader: whether the topics still have the partitions that were shared out.
  runtime::Task<> watch_topics();

  Cluster& cluster_;
  const GroupConsumerOptions options_;
  GroupListener no_listener_;
  GroupListener& listener_;
  Membership membership_;
  GroupOffsets offsets_;
  Fetcher fetcher_;
  std::set<TopicPartition> owned_;
  std::set<TopicPartition> to_locate_;  // owned, position not known
  std::set<TopicPartition> to_reset_;   // owned, committed position not to be had
  uint64_t shares_ = 0;                 // counts changes of owned_
  bool is_leader_ = false;
  // Partitions of the topics as the leader shared them out; nullopt: it was not asked to.
  std::optional<std::map<std::string, uint32_t>> shared_out_;
  MonotonicTime next_look_;
};

}  // namespace varve::client
