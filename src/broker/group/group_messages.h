// What is asked of a consumer group, and what it answers: the classic protocol's requests without their bytes on the
// wire. Fields mean what Kafka's mean, where nothing else is said.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/planted_bugs.h"
#include "base/time.h"
#include "metadata/log/metadata_log.h"
#include "metadata/state/entry.h"
#include "metadata/state/outcome.h"

namespace varve::broker {

// Causes, each of them Kafka's error code of the same name.
enum class GroupErrc : uint8_t {
  kNone,
  kCoordinatorNotAvailable,  // this broker cannot tell, or has too much to do: look for the coordinator and try again
  kNotCoordinator,
  kUnknownMember,
  kIllegalGeneration,
  kFencedInstance,
  kInconsistentProtocol,
  kInvalidSessionTimeout,
  kInvalidGroupId,
  kMemberIdRequired,
  kGroupMaxSizeReached,
  kRebalanceInProgress,
  kGroupIdNotFound,
  kNonEmptyGroup,
  kUnknownServerError,  // what Kafka answers where a group is too large for its log
  // Never told to a client: this answer follows from what this broker knows, which has to be made certain first.
  kUncertain,
};

// What apply says of a change of a group. Of a commit kIllegalGeneration may mean that there is no group.
GroupErrc error_of(metadata::CommandVerdict verdict);

struct GroupConfig {
  Duration initial_rebalance_delay = 3s;  // group.initial.rebalance.delay.ms
  Duration session_timeout_min = 6s;      // group.min.session.timeout.ms
  Duration session_timeout_max = 30min;   // group.max.session.timeout.ms
  size_t members_max = SIZE_MAX;          // group.max.size
  // For members who wait in their first join, and so send no heartbeats.
  Duration new_member_join_timeout = 5min;
  // Of one group: ids that were given out and have not come back.
  size_t pending_max = 5'000;
  // Of what a member brings with it, or the leader gives to it: it has to fit into an entry,
  size_t member_bytes_max = 256 * 1024;
  // beside all members' ids and the names of the group, its protocol and their type, which every entry has.
  size_t names_bytes_max = metadata::kMaxEntryBytes - 257 * 1024;
  // In memory: those with members, or that somebody joins.
  size_t groups_max = 100'000;
  size_t bytes_max = 256 << 20;   // of all groups in memory; nobody brings or is given what would exceed it
  size_t groups_per_job = 1'000;  // looked through by one job of the core, which others wait for
  // offsets.retention.minutes, which the state has; nullopt: it stays as it is there.
  std::optional<Duration> offsets_retention{};
  PlantedBugs bugs{};
};

struct JoinRequest {
  std::string group;
  std::string member;  // "": a new one
  std::optional<std::string> instance;
  std::string client_id;
  std::string client_host;
  int32_t session_timeout_ms = 0;
  int32_t rebalance_timeout_ms = 0;
  std::string protocol_type;
  std::vector<metadata::GroupProtocol> protocols;  // as the client prefers them
  bool needs_known_id = false;                     // from version 4 on (KIP-394)
  bool can_skip_assignment = false;                // from version 9 on
  std::string fresh_id;                            // for a member without an id
  size_t bytes_room = SIZE_MAX;                    // in memory, beside what the group has
  // The share of the memory for requests (RequestContext), given back when the group has taken or refused this.
  std::shared_ptr<const void> memory{};
};

struct JoinedMember {
  std::string id;
  std::optional<std::string> instance;
  std::string metadata;

  bool operator==(const JoinedMember&) const = default;
};
struct JoinAnswer {
  GroupErrc error = GroupErrc::kNone;
  std::string member;
  int32_t generation = -1;
  std::optional<std::string> protocol_type{};
  std::optional<std::string> protocol{};
  std::string leader{};
  bool skip_assignment = false;
  std::vector<JoinedMember> members{};  // for the leader

  static JoinAnswer of(GroupErrc error, std::string member = "") {
    return {.error = error, .member = std::move(member)};
  }
};
using JoinReply = std::move_only_function<void(JoinAnswer)>;

// Who says that he is a member.
struct MemberName {
  std::string id;
  std::optional<std::string> instance;
};

struct SyncRequest {
  std::string group;
  MemberName member;
  int32_t generation = -1;
  std::optional<std::string> protocol_type{};
  std::optional<std::string> protocol{};
  std::vector<std::pair<std::string, std::string>> assignments{};  // member id, bytes; of the leader
  size_t bytes_room = SIZE_MAX;                                    // in memory, beside what the group has
  std::shared_ptr<const void> memory{};                            // as JoinRequest's
};
struct SyncAnswer {
  GroupErrc error = GroupErrc::kNone;
  std::optional<std::string> protocol_type{};
  std::optional<std::string> protocol{};
  std::string assignment{};

  static SyncAnswer of(GroupErrc error) { return {.error = error}; }
};
using SyncReply = std::move_only_function<void(SyncAnswer)>;

struct HeartbeatRequest {
  std::string group;
  MemberName member;
  int32_t generation = -1;
};

struct LeaveRequest {
  std::string group;
  std::vector<MemberName> members;
};
struct LeaveAnswer {
  GroupErrc error = GroupErrc::kNone;
  std::vector<GroupErrc> members{};  // one for each of the request, if there is no error

  static LeaveAnswer of(GroupErrc error) { return {.error = error}; }
};

struct CommitRequest {
  std::string group;
  MemberName member;
  int32_t generation = -1;
  int64_t retention_ms = -1;  // -1: as long as the cluster keeps them
  std::vector<metadata::OffsetCommit> offsets;
};

}  // namespace varve::broker
