// A member of a group against a coordinator that answers what the test says.
#include "client/group_consumer.h"

#include <gtest/gtest.h>

#include "client/scripted_broker_testing.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/heartbeat.h"
#include "protocol/messages/leave_group.h"
#include "protocol/messages/list_offsets.h"
#include "protocol/messages/offset_commit.h"
#include "protocol/messages/offset_fetch.h"
#include "protocol/records/builder.h"

namespace varve::client {
namespace {

using protocol::ApiKey;
using protocol::ErrorCode;
using runtime::Task;

const TopicPartition kZero{"t", PartitionIndex(0)};
const TopicPartition kOne{"t", PartitionIndex(1)};

class Heard final : public GroupListener {
 public:
  Task<> revoked(std::set<TopicPartition> partitions) override {
    lines.push_back(fmt::format("revoked {}", partitions.size()));
    co_return;
  }
  Task<> assigned(std::set<TopicPartition> partitions) override {
    lines.push_back(fmt::format("assigned {}", partitions.size()));
    co_return;
  }
  void lost(const std::set<TopicPartition>& partitions) override {
    lines.push_back(fmt::format("lost {}", partitions.size()));
  }
  std::vector<std::string> lines;
};

class GroupConsumerTest : public ScriptedTest {
 protected:
  GroupConsumerTest() {
    broker_.lead({{"t", 2}});
    broker_.on<protocol::JoinGroupRequest>([this](const auto& request, int16_t) { return join(request); });
    broker_.on<protocol::SyncGroupRequest>([this](const auto& request, int16_t) { return sync(request); });
    broker_.on<protocol::HeartbeatRequest>([this](const auto& request, int16_t) {
      protocol::HeartbeatResponse response;
      response.error_code = next(heartbeat_errors_);
      if (request.member_id != "m" || request.generation_id != generation_) ++stale_heartbeats_;
      return response;
    });
    broker_.on<protocol::LeaveGroupRequest>([this](const auto& request, int16_t) {
      left_.push_back(request.members.at(0).member_id);
      return protocol::LeaveGroupResponse();
    });
    broker_.on<protocol::OffsetFetchRequest>(
        [this](const auto& request, int16_t) { return committed(request); });
    broker_.on<protocol::OffsetCommitRequest>(
        [this](const auto& request, int16_t) { return commit(request); });
    broker_.on<protocol::ListOffsetsRequest>([this](const auto& request, int16_t) {
      protocol::ListOffsetsResponse response;
      response.topics.emplace_back().name = "t";
      auto& row = response.topics[0].partitions.emplace_back();
      row.partition_index = request.topics[0].partitions[0].partition_index;
      row.offset = request.topics[0].partitions[0].timestamp == -2 ? log_start_ : Offset(5);
      return response;
    });
    broker_.on<protocol::FetchRequest>([this](const auto& request, int16_t) { return fetch(request); });
  }

  GroupConsumerOptions options() {
    GroupConsumerOptions options;
    options.member.group = "g";
    options.topics = {"t"};
    options.reset = OffsetReset::kEarliest;
    return options;
  }
  // Polls until `count` records have come.
  static Task<size_t> read(GroupConsumer& consumer, size_t count) {
    size_t records = 0;
    for (int i = 0; i < 50 && records < count; ++i) {
      auto polled = co_await consumer.poll(1s);
      EXPECT_TRUE(polled) << polled.error().message;
      if (!polled) break;
      records += polled->size();
    }
    co_return records;
  }

  static ErrorCode next(std::deque<ErrorCode>& errors) {
    if (errors.empty()) return ErrorCode::kNone;
    ErrorCode error = errors.front();
    errors.pop_front();
    return error;
  }
  std::optional<protocol::JoinGroupResponse> join(const protocol::JoinGroupRequest& request) {
    joins_.push_back(request.member_id);
    protocol::JoinGroupResponse response;
    response.error_code = next(join_errors_);
    response.member_id = "m";
    if (response.error_code != ErrorCode::kNone) return response;
    response.generation_id = ++generation_;
    response.protocol_type = "consumer";
    response.protocol_name = request.protocols.at(0).name;
    response.leader = "m";
    response.skip_assignment = kept_share_.has_value();
    subscription_ = decode_subscription(request.protocols[0].metadata);
    auto& member = response.members.emplace_back();
    member.member_id = "m";
    member.metadata = request.protocols[0].metadata;
    if (also_member_) response.members.push_back(*also_member_);
    return response;
  }
  std::optional<protocol::SyncGroupResponse> sync(const protocol::SyncGroupRequest& request) {
    protocol::SyncGroupResponse response;
    response.error_code = next(sync_errors_);
    shared_out_ += request.assignments.size();
    if (kept_share_) response.assignment = *kept_share_;
    for (const auto& row : request.assignments) {
      if (row.member_id == "m") response.assignment = row.assignment;
    }
    return response;
  }
  protocol::OffsetFetchResponse committed(const protocol::OffsetFetchRequest& request) {
    protocol::OffsetFetchResponse response;
    auto& group = response.groups.emplace_back();
    group.error_code = next(fetch_errors_);
    if (group.error_code != ErrorCode::kNone) return response;
    auto& topic = group.topics.emplace_back();
    topic.topic_id = ScriptedBroker::id_of("t");
    for (PartitionIndex index : request.groups.at(0).topics->at(0).partition_indexes) {
      auto& row = topic.partitions.emplace_back();
      row.partition_index = index;
      auto found = stored_.find(index);
      row.committed_offset = found == stored_.end() ? Offset(-1) : found->second;
    }
    return response;
  }
  protocol::OffsetCommitResponse commit(const protocol::OffsetCommitRequest& request) {
    protocol::OffsetCommitResponse response;
    ErrorCode error = next(commit_errors_);
    auto& topic = response.topics.emplace_back();
    for (const auto& row : request.topics.at(0).partitions) {
      auto& answer = topic.partitions.emplace_back();
      answer.partition_index = row.partition_index;
      answer.error_code = error;
      if (error == ErrorCode::kNone) stored_[row.partition_index] = row.committed_offset;
    }
    return response;
  }
  // Each partition has the offsets from log_start_ to 5, a record each.
  protocol::FetchResponse fetch(const protocol::FetchRequest& request) {
    protocol::FetchResponse response;
    auto& topic = response.responses.emplace_back();
    topic.topic_id = ScriptedBroker::id_of("t");
    for (const auto& asked : request.topics.at(0).partitions) {
      auto& row = topic.partitions.emplace_back();
      row.partition_index = asked.partition;
      fetched_from_.push_back(asked.fetch_offset);
      bool is_out = asked.fetch_offset < log_start_ || asked.fetch_offset > Offset(5);
      if (is_out) row.error_code = ErrorCode::kOffsetOutOfRange;
      if (is_out || asked.fetch_offset == Offset(5)) continue;
      protocol::records::BatchOptions batch;
      batch.base_offset = asked.fetch_offset;
      protocol::records::BatchBuilder builder(batch);
      for (Offset at = asked.fetch_offset; at < Offset(5); ++at) builder.add(protocol::records::NewRecord());
      row.records = Slice::take(builder.build());
    }
    return response;
  }

  std::optional<Slice> kept_share_;  // of the member's former life, which stays as it is
  size_t shared_out_ = 0;
  int32_t generation_ = 0;
  std::vector<std::string> joins_;
  std::vector<std::string> left_;
  std::vector<Offset> fetched_from_;
  std::optional<Subscription> subscription_;
  std::optional<protocol::JoinGroupResponse::JoinGroupResponseMember> also_member_;
  std::deque<ErrorCode> join_errors_, sync_errors_, heartbeat_errors_, fetch_errors_, commit_errors_;
  std::map<PartitionIndex, Offset> stored_;
  Offset log_start_{0};
  size_t stale_heartbeats_ = 0;
  Heard heard_;
};

TEST_F(GroupConsumerTest, AMemberJoinsInTwoStepsReadsCommitsAndLeaves) {
  join_errors_ = {ErrorCode::kMemberIdRequired};
  stored_[PartitionIndex(1)] = Offset(3);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumer consumer(*cluster, options(), &heard_);
    EXPECT_EQ(co_await read(consumer, 7), 7u);
    EXPECT_EQ(consumer.assignment(), (std::set<TopicPartition>{kZero, kOne}));
    EXPECT_TRUE(co_await consumer.commit());
    co_await consumer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(joins_, (std::vector<std::string>{"", "m"}));
  EXPECT_EQ(stored_[PartitionIndex(0)], Offset(5));
  EXPECT_EQ(stored_[PartitionIndex(1)], Offset(5));
  EXPECT_EQ(left_, std::vector<std::string>{"m"});
  EXPECT_EQ(heard_.lines, std::vector<std::string>{"assigned 2"});
}

TEST_F(GroupConsumerTest, AMemberThatIsClosedLeavesNoConnectionsOfItsOwn) {
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    for (int i = 0; i < 10; ++i) {
      GroupConsumer consumer(*cluster, options());
      EXPECT_EQ(co_await read(consumer, 10), 10u);
      EXPECT_EQ(broker_.open_connections(), 3u);
      co_await consumer.close();
      co_await runtime::sleep_for(1s);
    }
    EXPECT_EQ(broker_.open_connections(), 1u);
    co_await cluster->close();
  });
}

TEST_F(GroupConsumerTest, AMemberThatReadsNothingStaysAliveByItsHeartbeats) {
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumer consumer(*cluster, options());
    co_await read(consumer, 10);
    size_t before = broker_.asked[ApiKey::kHeartbeat];
    co_await runtime::sleep_for(60s);
    EXPECT_GE(broker_.asked[ApiKey::kHeartbeat], before + 18);
    EXPECT_EQ(stale_heartbeats_, 0u);
    EXPECT_EQ(joins_.size(), 1u);
    // Until its application has not come back for the rebalance timeout.
    co_await runtime::sleep_for(5min);
    EXPECT_EQ(left_, std::vector<std::string>{"m"});
    EXPECT_TRUE(consumer.assignment().empty());
    co_await read(consumer, 1);
    EXPECT_EQ(joins_.size(), 2u);
    co_await consumer.close();
    co_await cluster->close();
  });
}

TEST_F(GroupConsumerTest, ARebalanceIsHeardOfByHeartbeatAndEverythingIsGivenUpFirst) {
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumer consumer(*cluster, options(), &heard_);
    co_await read(consumer, 10);
    heartbeat_errors_ = {ErrorCode::kRebalanceInProgress};
    co_await consumer.poll(5s);
    co_await consumer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(joins_, (std::vector<std::string>{"", "m"}));
  EXPECT_EQ(heard_.lines, (std::vector<std::string>{"assigned 2", "revoked 2", "assigned 2"}));
}

TEST_F(GroupConsumerTest, ACooperativeMemberKeepsReadingWhatStaysAndRejoinsForWhatMoves) {
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumerOptions cooperative = options();
    cooperative.assignor = Assignor::kCooperativeSticky;
    GroupConsumer consumer(*cluster, cooperative, &heard_);
    co_await read(consumer, 10);
    // Somebody else comes.
    also_member_.emplace();
    also_member_->member_id = "n";
    also_member_->metadata = encode_subscription({{"t"}, {}, -1});
    heartbeat_errors_ = {ErrorCode::kRebalanceInProgress};
    co_await consumer.poll(5s);
    EXPECT_EQ(consumer.assignment(), std::set<TopicPartition>{kZero});
    EXPECT_EQ(subscription_->owned, std::set<TopicPartition>{kZero});
    co_await consumer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(joins_.size(), 3u);
  EXPECT_EQ(heard_.lines, (std::vector<std::string>{"assigned 2", "revoked 1", "assigned 0", "assigned 0"}));
}

TEST_F(GroupConsumerTest, AMemberThatIsForgottenLosesEverythingAndComesBackAsAnother) {
  for (ErrorCode error : {ErrorCode::kUnknownMemberId, ErrorCode::kIllegalGeneration}) {
    joins_.clear();
    heard_.lines.clear();
    run([&]() -> Task<> {
      auto cluster = make_cluster();
      GroupConsumer consumer(*cluster, options(), &heard_);
      co_await read(consumer, 10);
      heartbeat_errors_ = {error};
      co_await consumer.poll(5s);
      EXPECT_EQ(consumer.assignment().size(), 2u);
      co_await consumer.close();
      co_await cluster->close();
    });
    bool keeps_id = error == ErrorCode::kIllegalGeneration;
    EXPECT_EQ(joins_, (std::vector<std::string>{"", keeps_id ? "m" : ""}));
    EXPECT_EQ(heard_.lines, (std::vector<std::string>{"assigned 2", "lost 2", "assigned 2"}));
  }
}

TEST_F(GroupConsumerTest, ErrorsThatPassWhileJoiningAreTriedAgain) {
  join_errors_ = {ErrorCode::kCoordinatorLoadInProgress, ErrorCode::kNotCoordinator,
                  ErrorCode::kCoordinatorNotAvailable, ErrorCode::kRebalanceInProgress};
  sync_errors_ = {ErrorCode::kRebalanceInProgress, ErrorCode::kNotCoordinator, ErrorCode::kUnknownMemberId};
  fetch_errors_ = {ErrorCode::kUnstableOffsetCommit, ErrorCode::kNotCoordinator};
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumer consumer(*cluster, options());
    EXPECT_EQ(co_await read(consumer, 10), 10u);
    co_await consumer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(joins_.size(), 8u);
  EXPECT_EQ(broker_.asked[ApiKey::kFindCoordinator], 5u);
}

TEST_F(GroupConsumerTest, ErrorsThatStayAreTheCallers) {
  for (ErrorCode error : {ErrorCode::kGroupAuthorizationFailed, ErrorCode::kFencedInstanceId,
                          ErrorCode::kInconsistentGroupProtocol, ErrorCode::kGroupMaxSizeReached}) {
    join_errors_ = {error};
    run([&]() -> Task<> {
      auto cluster = make_cluster();
      GroupConsumer consumer(*cluster, options());
      auto polled = co_await consumer.poll(1s);
      EXPECT_FALSE(polled);
      EXPECT_TRUE(polled.error().is(error));
      co_await consumer.close();
      co_await cluster->close();
    });
  }
}

TEST_F(GroupConsumerTest, AStaticMemberIsFencedByItsNextLifeAndDoesNotLeave) {
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumerOptions fixed = options();
    fixed.member.instance_id = "i";
    GroupConsumer consumer(*cluster, fixed, &heard_);
    co_await read(consumer, 10);
    heartbeat_errors_ = {ErrorCode::kFencedInstanceId};
    co_await runtime::sleep_for(5s);
    auto polled = co_await consumer.poll(1s);
    EXPECT_FALSE(polled);
    EXPECT_TRUE(polled.error().is(ErrorCode::kFencedInstanceId));
    co_await consumer.close();
    co_await cluster->close();
  });
  EXPECT_TRUE(left_.empty());
  EXPECT_EQ(heard_.lines.back(), "lost 2");
}

TEST_F(GroupConsumerTest, AStaticLeaderThatComesBackLeavesTheAssignmentAsItIs) {
  kept_share_ = encode_assignment({kOne});
  run([&]() -> Task<> {
    ClusterOptions quick = cluster_options();
    quick.metadata_age_max = 10s;
    Cluster cluster(client_node_.process(), executor(), quick);
    GroupConsumerOptions fixed = options();
    fixed.member.instance_id = "i";
    GroupConsumer consumer(cluster, fixed);
    EXPECT_EQ(co_await read(consumer, 5), 5u);
    EXPECT_EQ(consumer.assignment(), std::set<TopicPartition>{kOne});
    for (int i = 0; i < 30; ++i) co_await consumer.poll(1s);
    co_await consumer.close();
    co_await cluster.close();
  });
  EXPECT_EQ(shared_out_, 0u);
  EXPECT_EQ(joins_.size(), 1u);
}

TEST_F(GroupConsumerTest, ACommitOfAPastGenerationIsRefusedAndTheMemberRejoins) {
  commit_errors_ = {ErrorCode::kCoordinatorLoadInProgress, ErrorCode::kIllegalGeneration};
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumer consumer(*cluster, options(), &heard_);
    co_await read(consumer, 10);
    auto done = co_await consumer.commit();
    EXPECT_FALSE(done);
    EXPECT_TRUE(done.error().is(ErrorCode::kIllegalGeneration));
    EXPECT_TRUE(consumer.assignment().empty());
    EXPECT_TRUE(stored_.empty());
    co_await consumer.poll(1s);
    EXPECT_TRUE(co_await consumer.commit());
    co_await consumer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(joins_.size(), 2u);
}

TEST_F(GroupConsumerTest, AnOffsetThatIsGoneIsResetAsToldToOrIsAnError) {
  stored_[PartitionIndex(0)] = Offset(1);
  stored_[PartitionIndex(1)] = Offset(99);
  log_start_ = Offset(3);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    GroupConsumer consumer(*cluster, options());
    EXPECT_EQ(co_await read(consumer, 4), 4u);
    EXPECT_EQ(consumer.position(kZero), Offset(5));
    co_await consumer.close();
    GroupConsumerOptions strict = options();
    strict.reset = OffsetReset::kNone;
    GroupConsumer other(*cluster, strict);
    bool has_failed = false;
    for (int i = 0; i < 5 && !has_failed; ++i) {
      auto polled = co_await other.poll(1s);
      has_failed = !polled;
      if (!polled) EXPECT_TRUE(polled.error().is(ErrorCode::kOffsetOutOfRange));
    }
    EXPECT_TRUE(has_failed);
    co_await other.close();
    co_await cluster->close();
  });
}

TEST_F(GroupConsumerTest, ALeaderRejoinsWhenATopicGrows) {
  run([&]() -> Task<> {
    ClusterOptions quick = cluster_options();
    quick.metadata_age_max = 20s;
    auto cluster = std::make_unique<Cluster>(client_node_.process(), executor(), quick);
    GroupConsumer consumer(*cluster, options());
    co_await read(consumer, 10);
    broker_.lead({{"t", 3}});
    MonotonicTime until = world_.now() + 45s;
    while (world_.now() < until) co_await consumer.poll(30s);
    EXPECT_EQ(consumer.assignment().size(), 3u);
    co_await consumer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(joins_.size(), 2u);
}

}  // namespace
}  // namespace varve::client
