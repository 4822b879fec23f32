#include "broker/handlers/topic_creation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve::broker {
namespace {

using protocol::ErrorCode;

class NewTopicChecksTest : public ::testing::Test {
 protected:
  NewTopicChecksTest() : image_(std::make_shared<metadata::MetadataImage>()) {}

  void add_existing(const std::string& name) {
    auto topic = std::make_shared<metadata::TopicView>();
    topic->name = name;
    image_->topics_by_name.emplace(name, topic);
  }
  NewTopicChecks checks() { return NewTopicChecks(limits_, image_); }
  static ErrorCode code_of(NewTopicChecks& checks, const std::string& name, uint32_t partitions = 1) {
    NewTopic topic;
    topic.name = name;
    topic.partitions = partitions;
    auto problem = checks.problem_of(topic);
    if (problem) return problem->code;
    checks.will_make(topic);
    return ErrorCode::kNone;
  }

  Limits limits_;
  std::shared_ptr<metadata::MetadataImage> image_;
};

TEST_F(NewTopicChecksTest, NamesThatDifferInDotsAndUnderscoresCollideHoweverManyAreAsked) {
  add_existing("a.b_c");
  NewTopicChecks few = checks();
  EXPECT_EQ(code_of(few, "a_b.c"), ErrorCode::kInvalidTopicException);
  EXPECT_EQ(code_of(few, "a-b-c"), ErrorCode::kNone);
  NewTopicChecks many = checks();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(code_of(many, "x_" + std::to_string(i)), ErrorCode::kNone);
    EXPECT_EQ(code_of(many, "x." + std::to_string(i)), ErrorCode::kInvalidTopicException);
    EXPECT_EQ(code_of(many, "a.b.c"), ErrorCode::kInvalidTopicException);
    EXPECT_EQ(code_of(many, "a.b_c"), ErrorCode::kTopicAlreadyExists);
    EXPECT_EQ(code_of(many, "a.b_cd" + std::to_string(i)), ErrorCode::kNone);
  }
}

TEST_F(NewTopicChecksTest, LimitsCountWhatTheRequestMakes) {
  limits_.topics_max = 3;
  limits_.partitions_per_topic_max = 10;
  add_existing("one");
  NewTopicChecks some = checks();
  EXPECT_EQ(code_of(some, "wide", 11), ErrorCode::kPolicyViolation);
  EXPECT_EQ(code_of(some, "two", 10), ErrorCode::kNone);
  EXPECT_EQ(code_of(some, "three"), ErrorCode::kNone);
  EXPECT_EQ(code_of(some, "four"), ErrorCode::kPolicyViolation);
}

}  // namespace
}  // namespace varve::broker
