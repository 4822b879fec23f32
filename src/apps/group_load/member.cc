#include "apps/group_load/member.h"

#include "client/consumer_protocol.h"
#include "protocol/messages/heartbeat.h"
#include "protocol/messages/join_group.h"
#include "protocol/messages/offset_commit.h"
#include "protocol/messages/sync_group.h"

namespace varve::apps {
namespace {

using client::ClientResult;
using client::Connection;
using protocol::ErrorCode;
using runtime::Task;

// Versions that Apache Kafka 4 and varve both serve.
constexpr int16_t kJoinVersion = 7;
constexpr int16_t kSyncVersion = 5;
constexpr int16_t kHeartbeatVersion = 4;
constexpr int16_t kCommitVersion = 8;
constexpr Duration kBetweenTries = 200ms;
constexpr size_t kTriesMax = 300;

// A broker that has just started, or a group between two generations.
bool may_try_again(ErrorCode code) {
  return code == ErrorCode::kMemberIdRequired || code == ErrorCode::kRebalanceInProgress ||
         code == ErrorCode::kIllegalGeneration || code == ErrorCode::kCoordinatorNotAvailable ||
         code == ErrorCode::kCoordinatorLoadInProgress || code == ErrorCode::kNotCoordinator;
}

}  // namespace

Task<ClientResult<void>> Member::join() {
  for (size_t tries = 0; tries < kTriesMax; ++tries) {
    auto code = co_await join_once();
    if (!code) co_return pass_error(code);
    if (*code == ErrorCode::kNone) co_return ClientResult<void>();
    if (!may_try_again(*code)) co_return client::refused(*code, "JoinGroup or SyncGroup");
    if (*code != ErrorCode::kMemberIdRequired) co_await runtime::sleep_for(kBetweenTries);
  }
  co_return client::failed(client::ClientErrc::kTimeout, "the group never became stable");
}

Task<ClientResult<ErrorCode>> Member::join_once() {
  protocol::JoinGroupRequest join;
  join.group_id = group_;
  join.session_timeout_ms = 45'000;
  join.rebalance_timeout_ms = 60'000;
  join.member_id = id_;
  join.group_instance_id = std::nullopt;
  join.protocol_type = "consumer";
  auto& offered = join.protocols.emplace_back();
  offered.name = "range";
  offered.metadata = client::encode_subscription({.topics = {topic_}, .owned = {}});
  auto joined = co_await Connection::ask(connection_, std::move(join), kJoinVersion, deadline());
  if (!joined) co_return pass_error(joined);
  if (!joined->member_id.empty()) id_ = joined->member_id;
  if (joined->error_code != ErrorCode::kNone) co_return joined->error_code;
  generation_ = joined->generation_id;

  protocol::SyncGroupRequest sync;
  sync.group_id = group_;
  sync.generation_id = generation_;
  sync.member_id = id_;
  sync.group_instance_id = std::nullopt;
  sync.protocol_type = "consumer";
  sync.protocol_name = "range";
  int32_t next = 0;
  for (const auto& member : joined->members) {
    auto& row = sync.assignments.emplace_back();
    row.member_id = member.member_id;
    row.assignment = client::encode_assignment({{topic_, PartitionIndex(next++)}});
  }
  auto synced = co_await Connection::ask(connection_, std::move(sync), kSyncVersion, deadline());
  if (!synced) co_return pass_error(synced);
  if (synced->error_code != ErrorCode::kNone) co_return synced->error_code;
  auto partitions = client::decode_assignment(synced->assignment);
  if (!partitions || partitions->empty()) co_return ErrorCode::kRebalanceInProgress;
  partition_ = partitions->begin()->partition;
  co_return ErrorCode::kNone;
}

Task<ClientResult<void>> Member::heartbeat() {
  protocol::HeartbeatRequest request;
  request.group_id = group_;
  request.generation_id = generation_;
  request.member_id = id_;
  request.group_instance_id = std::nullopt;
  auto reply = co_await Connection::ask(connection_, std::move(request), kHeartbeatVersion, deadline());
  if (!reply) co_return pass_error(reply);
  if (reply->error_code != ErrorCode::kNone) co_return client::refused(reply->error_code, "Heartbeat");
  co_return ClientResult<void>();
}

Task<ClientResult<void>> Member::commit() {
  protocol::OffsetCommitRequest request;
  request.group_id = group_;
  request.generation_id_or_member_epoch = generation_;
  request.member_id = id_;
  request.group_instance_id = std::nullopt;
  auto& topic = request.topics.emplace_back();
  topic.name = topic_;
  auto& partition = topic.partitions.emplace_back();
  partition.partition_index = partition_;
  partition.committed_offset = Offset(++offset_);
  auto reply = co_await Connection::ask(connection_, std::move(request), kCommitVersion, deadline());
  if (!reply) co_return pass_error(reply);
  ErrorCode code = reply->topics.at(0).partitions.at(0).error_code;
  if (code != ErrorCode::kNone) co_return client::refused(code, "OffsetCommit");
  co_return ClientResult<void>();
}

}  // namespace varve::apps
