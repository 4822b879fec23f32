#include "client/consumer_protocol.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace varve::client {
namespace {

Slice bytes_of(std::vector<uint8_t> bytes) { return Slice::take(std::move(bytes)); }

const std::vector<uint8_t> kSubscription = {
    0,    3,                                                    // version
    0,    0,    0,    1,    0, 1, 't',                          // topics
    0xff, 0xff, 0xff, 0xff,                                     // user data: null
    0,    0,    0,    1,    0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 2,  // owned partitions
    0,    0,    0,    9,                                        // generation
    0xff, 0xff,                                                 // rack: null
};

TEST(ConsumerProtocol, SubscriptionsAreThoseOfKafkasConsumer) {
  Subscription subscription{{"t"}, {{"t", PartitionIndex(2)}}, 9};
  EXPECT_EQ(to_hex(encode_subscription(subscription).view()), to_hex(kSubscription));
  EXPECT_EQ(decode_subscription(bytes_of(kSubscription)), subscription);
}

TEST(ConsumerProtocol, OlderSubscriptionsSayLess) {
  std::vector<uint8_t> first(kSubscription.begin(), kSubscription.begin() + 13);
  first[1] = 0;
  EXPECT_EQ(decode_subscription(bytes_of(first)), (Subscription{{"t"}, {}, -1}));
  std::vector<uint8_t> second(kSubscription.begin(), kSubscription.end() - 6);
  second[1] = 1;
  EXPECT_EQ(decode_subscription(bytes_of(second)), (Subscription{{"t"}, {{"t", PartitionIndex(2)}}, -1}));
}

TEST(ConsumerProtocol, AssignmentsAreThoseOfKafkasConsumer) {
  std::set<TopicPartition> partitions{
      {"a", PartitionIndex(0)}, {"a", PartitionIndex(1)}, {"b", PartitionIndex(7)}};
  Slice bytes = encode_assignment(partitions);
  EXPECT_EQ(to_hex(bytes.view()),
            "0003"
            "00000002"
            "000161"
            "00000002"
            "00000000"
            "00000001"
            "000162"
            "00000001"
            "00000007"
            "ffffffff");
  EXPECT_EQ(decode_assignment(bytes), partitions);
  EXPECT_EQ(decode_assignment(Slice()), std::set<TopicPartition>());
}

TEST(ConsumerProtocol, WhatIsCutShortOrAbsurdIsRefused) {
  for (long size = 0; size < static_cast<long>(kSubscription.size()); ++size) {
    EXPECT_FALSE(decode_subscription(bytes_of({kSubscription.begin(), kSubscription.begin() + size})))
        << size;
  }
  EXPECT_FALSE(decode_subscription(bytes_of({0xff, 0xff})));
  EXPECT_FALSE(decode_assignment(bytes_of({0, 3})));
  EXPECT_FALSE(decode_assignment(bytes_of({0, 3, 0x7f, 0xff, 0xff, 0xff})));
  EXPECT_FALSE(decode_assignment(bytes_of({0, 0, 0, 0, 0, 1, 0, 1, 'a', 0x7f, 0xff, 0xff, 0xff})));
  // Nothing makes it read past the end.
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> bytes = kSubscription;
    for (size_t changes = random.below(4); changes > 0; --changes) {
      bytes[random.below(bytes.size())] = static_cast<uint8_t>(random.below(256));
    }
    bytes.resize(random.below(bytes.size() + 1));
    decode_subscription(bytes_of(bytes));
    decode_assignment(bytes_of(bytes));
  }
}

}  // namespace
}  // namespace varve::client
