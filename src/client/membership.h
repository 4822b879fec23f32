// Membership: one member's part in the classic group protocol, whatever the group shares out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cluster.h"
#include "client/group_offsets.h"
#include "protocol/messages/join_group.h"
#include "protocol/messages/sync_group.h"

namespace varve::client {

struct MembershipOptions {
  std::string group;
  std::optional<std::string> instance_id;  // makes it a static member (KIP-345)
  std::string protocol_type = "consumer";
  Duration session_timeout = 45s;
  // How long a rebalance waits for this member; a member whose application has not been heard of for so long leaves.
  Duration rebalance_timeout = 5min;
  Duration heartbeat_interval = 3s;
};

// What came of a JoinGroup, SyncGroup, Heartbeat or LeaveGroup.
struct MembershipAnswer {
  protocol::ApiKey api;
  GroupIdentity who;
  MonotonicTime sent_at;
  std::optional<protocol::ErrorCode> error{};  // nullopt: no answer
};

// What the member makes known of itself, and how it leads.
class MembershipDelegate {
 public:
  virtual ~MembershipDelegate() = default;

  struct Protocol {
    std::string name;
    Slice metadata;
  };
  struct Member {
    std::string id;
    std::optional<std::string> instance_id;
    Slice metadata;
  };
  // In order of preference; asked before each try to join.
  virtual std::vector<Protocol> protocols() = 0;
  // As the leader of `generation`: what each member gets.
  virtual runtime::Task<ClientResult<std::map<std::string, Slice>>> assign(int32_t generation,
                                                                           std::string protocol,
                                                                           std::vector<Member> members) = 0;
  // The broker has forgotten the member: what it held belongs to others by now.
  virtual void lost() = 0;
  // needs_join() or problem() has changed outside of join().
  virtual void woken() = 0;
  // A request of the member's own place in the group is about to be sent, by `who`;
  virtual void asks(protocol::ApiKey api, const GroupIdentity& who) = 0;
  // and was answered, or given up. sent_at: since when it may have arrived.
  virtual void answered(const MembershipAnswer& answer) = 0;
};

// Life: made beside its cluster; join() whenever needs_join(), while a task of its own sends heartbeats; leave() or not;
// close() and await it, then destroy. Calls of one task at a time.
class Membership {
 public:
  struct Joined {
    int32_t generation = -1;
    std::string protocol;
    Slice assignment;  // as the leader wrote it
    bool is_leader = false;
  };

  Membership(Cluster& cluster, MembershipOptions options, MembershipDelegate& delegate);

  // False between a successful join() and the next rebalance.
  bool needs_join() const { return state_ != State::kStable || is_rebalancing_; }
  // Joins and takes part in rebalances until one has ended with an assignment: up to the rebalance timeout and more.
  // Errors are final, but for kStopped.
  runtime::Task<ClientResult<Joined>> join();
  void request_rejoin() { is_rebalancing_ = true; }

  // The application is heard of while any of its calls is under way, and at the end of each.
  void begin_call() { ++calls_; }
  void end_call() {
    --calls_;
    touched_at_ = cluster_.now();
  }
  // Ends membership for good; static members stay members until their session ends (KIP-345).
  runtime::Task<> leave();
  runtime::Task<> close();

  const GroupIdentity& identity() const { return identity_; }
  Lane lane() const { return lane_; }
  // What ended the membership for good.
  const std::optional<ClientError>& problem() const { return problem_; }
  // A broker's answer to `who` in a commit says the same as one to a heartbeat would.
  void heard(protocol::ErrorCode code, const GroupIdentity& who);

 private:
  enum class State : uint8_t { kOut, kJoining, kStable };
  enum class Next : uint8_t { kAgain, kAgainSoon, kDone, kFailed };

  runtime::Task<Next> join_once(Joined& joined);
  runtime::Task<ClientResult<std::map<std::string, Slice>>> lead(const protocol::JoinGroupResponse& response);
  runtime::Task<Next> sync(const protocol::JoinGroupResponse& response, Joined& joined);
  Next after_error(const ClientError& error);
  // To the group's coordinator, on the lane of the member.
  template <class Request>
  runtime::Task<ClientResult<typename Request::Response>> ask(Request request, GroupIdentity who,
                                                              AskOptions options);
  runtime::Task<> heartbeat_loop();
  runtime::Task<> heartbeat();
  void forget_membership(protocol::ErrorCode why);
  runtime::Task<> say_goodbye(GroupIdentity who);
  void fail_for_good(ClientError error);

  Cluster& cluster_;
  const MembershipOptions options_;
  MembershipDelegate& delegate_;
  const Lane lane_;
  State state_ = State::kOut;
  bool is_rebalancing_ = false;
  GroupIdentity identity_;
  size_t calls_ = 0;
  MonotonicTime touched_at_;
  std::optional<ClientError> problem_;
  bool has_heartbeats_ = false;
  runtime::TaskScope scope_;  // last: its frames use all of the above
};

}  // namespace varve::client
