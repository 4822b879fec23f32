#include "broker/handlers/fetch_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

WantedPartition wanted(int32_t partition, int64_t offset) {
  WantedPartition result;
  result.key = {Uuid{}, "t", PartitionIndex(partition)};
  result.offset = Offset(offset);
  result.bytes_max = 1000;
  return result;
}

FetchSessionRequest request(int32_t session, int32_t epoch, std::vector<WantedPartition> partitions = {},
                            std::vector<int32_t> forgotten = {}) {
  FetchSessionRequest result;
  result.session_id = session;
  result.epoch = epoch;
  result.partitions = std::move(partitions);
  for (int32_t partition : forgotten) result.forgotten.push_back({Uuid{}, "t", PartitionIndex(partition)});
  return result;
}

class FetchSessions : public ::testing::Test {
 protected:
  FetchSessions() : FetchSessions(Limits{}) {}
  explicit FetchSessions(const Limits& limits) : cache_(limits, 1) {}

  // A high watermark of 10 everywhere; records where `with_records` says.
  static std::vector<FetchedSummary> summaries(const FetchContext& context,
                                               std::set<int32_t> with_records = {}) {
    std::vector<FetchedSummary> result;
    for (const WantedPartition& partition : context.partitions) {
      FetchedSummary& summary = result.emplace_back();
      summary.has_records = with_records.contains(partition.key.partition.value());
      summary.high_watermark = Offset(10);
      summary.log_start = Offset(0);
    }
    return result;
  }
  static std::vector<int32_t> indexes(const FetchContext& context) {
    std::vector<int32_t> result;
    for (const WantedPartition& partition : context.partitions)
      result.push_back(partition.key.partition.value());
    return result;
  }
  int32_t open(std::vector<WantedPartition> partitions) {
    FetchContext context = cache_.begin(request(0, 0, std::move(partitions)), now_);
    return cache_.finish(context, summaries(context), now_).session_id;
  }

  MonotonicTime now_;
  FetchSessionCache cache_;
};

TEST_F(FetchSessions, C045AnIncrementalFetchChangesForgetsAndLeavesOutWhatIsNotNews) {
  int32_t id = open({wanted(0, 5), wanted(1, 5), wanted(2, 5)});
  ASSERT_NE(id, 0);
  // Epoch 1 moves p1 back to 0: it is served from there, the others have no news.
  FetchContext context = cache_.begin(request(id, 1, {wanted(1, 0)}), now_);
  EXPECT_THAT(indexes(context), ElementsAre(0, 1, 2));
  EXPECT_EQ(context.partitions[1].offset, Offset(0));
  FetchSessionAnswer answer = cache_.finish(context, summaries(context, {1}), now_);
  EXPECT_EQ(answer.session_id, id);
  EXPECT_THAT(answer.included, ElementsAre(false, true, false));
  // Epoch 2 forgets p2; p1, which had records, is now behind p0.
  context = cache_.begin(request(id, 2, {}, {2}), now_);
  EXPECT_THAT(indexes(context), ElementsAre(0, 1));
  answer = cache_.finish(context, summaries(context), now_);
  EXPECT_THAT(answer.included, ElementsAre(false, false));
  // Epoch 3 is empty: an error is always told, and told again as news once it is over.
  context = cache_.begin(request(id, 3), now_);
  auto with_error = summaries(context);
  with_error[0].has_error = true;
  EXPECT_THAT(cache_.finish(context, with_error, now_).included, ElementsAre(true, false));
  context = cache_.begin(request(id, 4), now_);
  EXPECT_THAT(cache_.finish(context, summaries(context), now_).included, ElementsAre(true, false));
}

TEST_F(FetchSessions, C046UnknownSessionsAndWrongEpochsAreTold) {
  EXPECT_EQ(cache_.begin(request(12345, 1), now_).error, ErrorCode::kFetchSessionIdNotFound);
  int32_t id = open({wanted(0, 0)});
  EXPECT_EQ(cache_.begin(request(id, 3), now_).error, ErrorCode::kInvalidFetchSessionEpoch);
  // The session survives a wrong epoch.
  EXPECT_EQ(cache_.begin(request(id, 1), now_).error, ErrorCode::kNone);
  // Session 0 with epoch -1 is a full fetch without a session.
  FetchContext context = cache_.begin(request(0, -1, {wanted(0, 0)}), now_);
  EXPECT_THAT(indexes(context), ElementsAre(0));
  EXPECT_EQ(cache_.finish(context, summaries(context), now_).session_id, 0);
}

TEST_F(FetchSessions, TheFinalEpochAndANewFullFetchCloseTheOldSession) {
  int32_t id = open({wanted(0, 0)});
  cache_.begin(request(id, -1), now_);
  EXPECT_EQ(cache_.session_count(), 0u);
  id = open({wanted(0, 0)});
  FetchContext context = cache_.begin(request(id, 0, {wanted(1, 0)}), now_);
  int32_t next = cache_.finish(context, summaries(context), now_).session_id;
  EXPECT_NE(next, id);
  EXPECT_EQ(cache_.session_count(), 1u);
}

TEST_F(FetchSessions, ASessionKeepsToNamesOrToIds) {
  int32_t id = open({wanted(0, 0)});
  FetchSessionRequest by_id = request(id, 1);
  by_id.uses_topic_ids = true;
  EXPECT_EQ(cache_.begin(by_id, now_).error, ErrorCode::kFetchSessionTopicIdError);
}

TEST_F(FetchSessions, ASessionWithoutPartitionsEnds) {
  int32_t id = open({wanted(0, 0)});
  FetchContext context = cache_.begin(request(id, 1, {}, {0}), now_);
  EXPECT_EQ(context.error, ErrorCode::kNone);
  EXPECT_THAT(context.partitions, IsEmpty());
  EXPECT_EQ(cache_.finish(context, {}, now_).session_id, 0);
  EXPECT_EQ(cache_.session_count(), 0u);
  EXPECT_EQ(cache_.partition_count(), 0u);
}

TEST_F(FetchSessions, ARequestThatOvertookTheAnswerMakesItInvalid) {
  int32_t id = open({wanted(0, 0)});
  FetchContext first = cache_.begin(request(id, 1), now_);
  FetchContext second = cache_.begin(request(id, 2), now_);
  EXPECT_EQ(cache_.finish(first, summaries(first), now_).error, ErrorCode::kInvalidFetchSessionEpoch);
  EXPECT_EQ(cache_.finish(second, summaries(second), now_).error, ErrorCode::kNone);
}

class FewFetchSessions : public FetchSessions {
 protected:
  static Limits limits() {
    Limits result;
    result.fetch_sessions_max = 2;
    result.fetch_session_partitions_max = 6;
    return result;
  }
  FewFetchSessions() : FetchSessions(limits()) {}
};

TEST_F(FewFetchSessions, C046TheCacheIsBoundedAndGivesNoSessionWhenFull) {
  EXPECT_NE(open({wanted(0, 0), wanted(1, 0)}), 0);
  EXPECT_NE(open({wanted(0, 0), wanted(1, 0)}), 0);
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(open({wanted(0, 0)}), 0);
  EXPECT_EQ(cache_.session_count(), 2u);
  // A larger one takes the place of the smallest, as in Kafka.
  EXPECT_NE(open({wanted(0, 0), wanted(1, 0), wanted(2, 0)}), 0);
  EXPECT_EQ(cache_.session_count(), 2u);
  EXPECT_LE(cache_.partition_count(), 6u);
  // More partitions than all sessions may have together.
  std::vector<WantedPartition> many;
  for (int32_t i = 0; i < 7; ++i) many.push_back(wanted(i, 0));
  EXPECT_EQ(open(many), 0);
}

TEST_F(FewFetchSessions, ASessionUnusedForLongGivesWayToAny) {
  int32_t stale = open({wanted(0, 0), wanted(1, 0)});
  now_ = now_ + 60s;
  int32_t fresh = open({wanted(0, 0), wanted(1, 0)});
  now_ = now_ + (FetchSessionCache::kStaleAfter - 59s);
  EXPECT_NE(open({wanted(0, 0)}), 0);
  EXPECT_EQ(cache_.begin(request(stale, 1), now_).error, ErrorCode::kFetchSessionIdNotFound);
  EXPECT_EQ(cache_.begin(request(fresh, 1), now_).error, ErrorCode::kNone);
}

}  // namespace
}  // namespace varve::broker
