#include "broker/handlers/topic_lookup.h"

#include <gtest/gtest.h>

#include <array>

namespace varve::broker {
namespace {

struct AskedPartition {
  PartitionIndex index;
};
struct AskedTopic {
  std::string name;
  std::vector<AskedPartition> partitions;
};

class TopicLookupTest : public testing::Test {
 protected:
  TopicLookupTest() {
    add_topic("one", 1);
    add_topic("three", 3);
  }
  void add_topic(std::string name, uint32_t partitions) {
    auto view = std::make_shared<metadata::TopicView>();
    view->name = name;
    for (uint32_t i = 0; i < partitions; ++i) view->partitions.emplace_back(100 * partitions + i);
    image_.topics_by_name[name] = std::move(view);
  }
  bool knows(const std::vector<AskedTopic>& topics) {
    auto find = [&](const AskedTopic& topic) { return image_.find_topic(topic.name); };
    return knows_all(topics, find, &AskedTopic::partitions, &AskedPartition::index);
  }
  static std::vector<AskedPartition> indexes(std::initializer_list<int32_t> values) {
    std::vector<AskedPartition> partitions;
    for (int32_t value : values) partitions.push_back({PartitionIndex(value)});
    return partitions;
  }

  metadata::MetadataImage image_;
};

TEST_F(TopicLookupTest, FindsExactlyThePartitionsThatATopicHas) {
  const metadata::TopicView* topic = image_.find_topic("three");
  EXPECT_EQ(find_partition(topic, PartitionIndex(0)), PartitionHandle(300));
  EXPECT_EQ(find_partition(topic, PartitionIndex(2)), PartitionHandle(302));
  EXPECT_FALSE(find_partition(topic, PartitionIndex(3)));
  EXPECT_FALSE(find_partition(topic, PartitionIndex(-1)));
  EXPECT_FALSE(find_partition(nullptr, PartitionIndex(0)));
}

TEST_F(TopicLookupTest, KnowsARequestIfItKnowsEachOfItsPartitions) {
  EXPECT_TRUE(knows({}));
  EXPECT_TRUE(knows({{"one", indexes({0})}, {"three", indexes({2, 0})}}));
  EXPECT_FALSE(knows({{"one", indexes({0})}, {"three", indexes({2, 3})}}))
      << "the last partition of the last topic";
  EXPECT_FALSE(knows({{"one", indexes({-1})}, {"three", indexes({0})}}));
  EXPECT_FALSE(knows({{"three", indexes({0})}, {"none", indexes({0})}}));
  EXPECT_TRUE(knows({{"none", {}}})) << "nothing of it is asked for";
}

TEST_F(TopicLookupTest, KnowsPartitionsThatAreAskedForOneByOne) {
  auto index_of = [](int32_t index) { return std::array{PartitionIndex(index)}; };
  auto find = [&](int32_t) { return image_.find_topic("three"); };
  EXPECT_TRUE(knows_all(std::vector{0, 1, 2}, find, index_of, std::identity()));
  EXPECT_FALSE(knows_all(std::vector{0, 1, 3}, find, index_of, std::identity()));
}

}  // namespace
}  // namespace varve::broker
