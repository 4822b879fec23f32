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
    Send& made = history_.make_send(0, "t", key_.partition);
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
  EXPECT_THAT(findings(2, 4), HasSubstr("starts at 2, and nobody raised its log start"));
}

TEST_F(DeliveryTest, AHoleIsFoundWhereverItIs) {
  read(send(), 0);
  read(send(), 4);
  EXPECT_THAT(findings(0, 8), ::testing::AllOf(HasSubstr("nothing between 2 and 4"),
                                               HasSubstr("nothing between 6 and its end 8")));
}

}  // namespace
}  // namespace varve::sim
