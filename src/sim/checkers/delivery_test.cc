#include "sim/checkers/delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "protocol/records/builder.h"

namespace varve::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One partition, whose batches of two records are read from one broker.
class DeliveryTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kRecords = 2;

  DeliveryTest() {
    key_.topic.bytes[0] = 1;
    topics_.told_of("t", key_.topic, 1);
  }

  Send& send() {
    Send& made = history_.make_send(history_.next_number(), 0, "t", key_.partition);
    protocol::records::BatchBuilder builder({});
    std::array<uint8_t, 8> number;
    store_be(number.data(), made.number);
    for (uint32_t i = 0; i < kRecords; ++i) builder.add({WallTime(1), std::nullopt, ByteView(number)});
    made.bytes = Slice::take(builder.build());
    made.records = kRecords;
    history_.sending(made, key_.topic, 1, made.number);
    return made;
  }
  void read(const Send& send, int64_t base) {
    ByteView sent = send.bytes.view();
    std::vector<uint8_t> bytes(sent.begin(), sent.end());
    protocol::records::set_base_offset(bytes, Offset(base));
    history_.saw(key_, *protocol::records::BatchView::first_of(bytes), "broker0");
  }
  std::string findings(int64_t log_start, int64_t end) {
    EXPECT_TRUE(findings_.empty()) << findings_.to_string();
    check_delivery(history_, topics_, {{"broker0", {{key_, {Offset(log_start), Offset(end)}}}}}, findings_);
    return findings_.empty() ? "" : findings_.to_string();
  }

  World world_{WorldOptions{}};
  Findings findings_;
  TopicBook topics_{world_, findings_};
  History history_{world_, topics_, findings_};
  PartitionKey key_;
};

TEST_F(DeliveryTest, BatchesThatFollowOneAnotherAreInOrder) {
  for (int64_t base : {0, 2, 4}) read(send(), base);
  EXPECT_THAT(findings(0, 6), IsEmpty());
}

TEST_F(DeliveryTest, AnAcknowledgedBatchBelowARaisedLogStartIsLost) {
  Send& first = send();
  Send& second = send();
  history_.acked(first, key_, Offset(0), "broker0");
  read(second, 2);
  EXPECT_THAT(findings(2, 4), ::testing::AllOf(HasSubstr("starts at 2"), HasSubstr("is not there")));
}

TEST_F(DeliveryTest, ARaisedLogStartIsFoundEvenIfAllWasReadBefore) {
  read(send(), 0);
  read(send(), 2);
  EXPECT_THAT(findings(2, 4), HasSubstr("starts at 2, and its records were deleted up to 0"));
}

TEST_F(DeliveryTest, WhatClientsDeletedIsNotLost) {
  Send& deleted = send();
  Send& cut = send();
  history_.acked(deleted, key_, Offset(0), "broker0");
  history_.acked(cut, key_, Offset(2), "broker0");
  history_.ask_deletion(key_, Offset(3));
  history_.records_deleted(key_, Offset(3), "broker0");
  read(cut, 2);
  read(send(), 4);
  EXPECT_THAT(findings(3, 6), IsEmpty());
}

TEST_F(DeliveryTest, ADeletionOfUnknownFateMayHaveComeThroughOrNot) {
  Send& first = send();
  history_.acked(first, key_, Offset(0), "broker0");
  read(first, 0);
  history_.ask_deletion(key_, Offset(2));
  EXPECT_THAT(findings(0, 2), IsEmpty());
  EXPECT_THAT(findings(2, 2), IsEmpty());
}

TEST_F(DeliveryTest, ALogStartBelowWhatWasDeletedHasGoneBack) {
  read(send(), 0);
  history_.ask_deletion(key_, Offset(2));
  history_.records_deleted(key_, Offset(2), "broker0");
  EXPECT_THAT(findings(0, 2), HasSubstr("starts at 0, and its records were deleted up to 2"));
}

TEST_F(DeliveryTest, ALogStartThatAClientIsToldAndNobodyAskedForIsFound) {
  history_.ask_deletion(key_, Offset(2));
  history_.records_deleted(key_, Offset(4), "broker0");
  EXPECT_THAT(findings_.to_string(), HasSubstr("begins at 4 after a deletion"));
}

TEST_F(DeliveryTest, PartitionsThatNobodyAskedForAndThoseThatABrokerTakesBackAreFound) {
  topics_.ask_partitions(key_.topic, 3);
  topics_.told_of("t", key_.topic, 3);
  topics_.host_told("broker0", key_.topic, 3, topics_.told_by("broker0", key_.topic));
  topics_.host_told("broker1", key_.topic, 1, topics_.told_by("broker1", key_.topic));
  EXPECT_TRUE(findings_.empty());
  topics_.host_told("broker0", key_.topic, 1, topics_.told_by("broker0", key_.topic));
  EXPECT_THAT(findings_.to_string(), HasSubstr("broker0 tells of 1 partitions"));
  topics_.told_of("t", key_.topic, 4);
  EXPECT_THAT(findings_.to_string(), HasSubstr("at most 3 were asked for"));
}

TEST_F(DeliveryTest, AHoleIsFoundWhereverItIs) {
  read(send(), 0);
  read(send(), 4);
  EXPECT_THAT(findings(0, 8), ::testing::AllOf(HasSubstr("nothing between 2 and 4"),
                                               HasSubstr("nothing between 6 and its end 8")));
}

}  // namespace
}  // namespace varve::sim
