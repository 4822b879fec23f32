#include "client/producer.h"

#include <gtest/gtest.h>

#include "client/producer_testing.h"
#include "client/scripted_broker_testing.h"
#include "protocol/messages/init_producer_id.h"

namespace varve::client {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using protocol::records::BatchHeader;
using runtime::Completion;
using runtime::Task;

// What a script saw of one batch.
struct Seen {
  BatchHeader header;
  int16_t version = 0;
  Uuid topic;
  PartitionIndex partition;
};

class ScriptedProducerTest : public ScriptedTest {
 protected:
  ScriptedProducerTest() {
    broker_.lead({{"t", 2}});
    broker_.on<protocol::InitProducerIdRequest>([this](const auto&, int16_t) {
      protocol::InitProducerIdResponse response;
      response.producer_id = ProducerId(100 + static_cast<int64_t>(identities_++));
      response.producer_epoch = first_epoch_;
      return response;
    });
  }
  // `answer(number of the batch among all seen, header)`: nullopt means no answer.
  using Answer = std::function<std::optional<ErrorCode>(size_t, const BatchHeader&)>;
  void answer_with(Answer answer) {
    broker_.on<ProduceRequest>(
        [this, answer = std::move(answer)](const ProduceRequest& request,
                                           int16_t version) -> std::optional<ProduceResponse> {
          ProduceResponse response;
          for (const auto& topic : request.topic_data) {
            auto& rows = response.responses.emplace_back();
            rows.name = topic.name;
            rows.topic_id = topic.topic_id;
            for (const auto& data : topic.partition_data) {
              Slice bytes = data.records->joined();
              seen_.push_back({BatchHeader::decode(bytes.view()), version, topic.topic_id, data.index});
              auto code = answer(seen_.size() - 1, seen_.back().header);
              if (!code) return std::nullopt;
              auto& row = rows.partition_responses.emplace_back();
              row.index = data.index;
              row.error_code = *code;
              row.base_offset = *code == ErrorCode::kNone ? Offset(next_offset_) : Offset(-1);
              if (*code == ErrorCode::kNone) next_offset_ += seen_.back().header.record_count;
            }
          }
          return response;
        });
  }
  static ProducerOptions quick() {
    ProducerOptions options;
    options.linger = 0ms;
    options.request_timeout = 2s;
    return options;
  }
  static Task<Producer::Result> sent(Producer& producer, std::string value) {
    Completion<Producer::Result> result = producer.send("t", kZero, record_of(std::move(value)));
    co_return co_await result.wait();
  }

  std::vector<Seen> seen_;
  size_t identities_ = 0;
  ProducerEpoch first_epoch_{0};
  int64_t next_offset_ = 0;
};

TEST_F(ScriptedProducerTest, RecordsThatLingerTogetherAreOneBatchAndEachHasItsOffset) {
  answer_with([](size_t, const auto&) { return ErrorCode::kNone; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.linger = 50ms;
    Producer producer(*cluster, options);
    producer.start();
    std::vector<Completion<Producer::Result>> results;
    for (int i = 0; i < 5; ++i) results.push_back(producer.send("t", kZero, record_of("v")));
    for (int i = 0; i < 5; ++i) {
      auto result = co_await results[static_cast<size_t>(i)].wait();
      EXPECT_TRUE(result);
      EXPECT_EQ(result->offset, Offset(i));
      EXPECT_EQ(result->topic, ScriptedBroker::id_of("t"));
    }
    EXPECT_EQ(producer.buffered_bytes(), 0u);
    co_await producer.close();
    co_await cluster->close();
  });
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].header.record_count, 5);
  EXPECT_EQ(seen_[0].header.producer_id, ProducerId(100));
  EXPECT_EQ(seen_[0].version, ProduceRequest::kMaxVersion);
}

TEST_F(ScriptedProducerTest, ABatchThatIsFullDoesNotLinger) {
  answer_with([](size_t, const auto&) { return ErrorCode::kNone; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.linger = 60min;
    options.batch_bytes_max = 1'000;
    Producer producer(*cluster, options);
    producer.start();
    auto first = producer.send("t", kZero, record_of(std::string(700, 'x')));
    auto second = producer.send("t", kZero, record_of(std::string(700, 'y')));
    EXPECT_TRUE(co_await first.wait());
    EXPECT_FALSE(second.is_set());
    co_await producer.flush();
    EXPECT_TRUE(second.is_set());
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(seen_.size(), 2u);
}

TEST_F(ScriptedProducerTest, WhatGetsNoAnswerIsSentAgainUnderTheSameSequence) {
  answer_with([](size_t number, const auto&) {
    return number == 1 ? std::nullopt : std::optional(ErrorCode::kNone);
  });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    Producer producer(*cluster, quick());
    producer.start();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(co_await sent(producer, "v"));
    co_await producer.close();
    co_await cluster->close();
  });
  ASSERT_EQ(seen_.size(), 4u);
  EXPECT_EQ(seen_[1].header, seen_[2].header);
  EXPECT_EQ(seen_[2].header.base_sequence, Sequence(1));
  EXPECT_EQ(seen_[3].header.base_sequence, Sequence(2));
}

TEST_F(ScriptedProducerTest, FiveAreInFlightAndNoMore) {
  size_t waiting = 0;
  answer_with([&](size_t number, const auto&) -> std::optional<ErrorCode> {
    if (number == 0) return ErrorCode::kNone;
    ++waiting;
    return std::nullopt;
  });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.batch_bytes_max = 1;
    options.request_timeout = 60s;
    Producer producer(*cluster, options);
    producer.start();
    EXPECT_TRUE(co_await sent(producer, "v"));
    for (int i = 0; i < 9; ++i) producer.send("t", kZero, record_of("v"));
    co_await runtime::sleep_for(10s);
    EXPECT_EQ(waiting, 5u);
    co_await producer.close();
    co_await cluster->close();
  });
  for (size_t i = 0; i < seen_.size(); ++i) {
    EXPECT_EQ(seen_[i].header.base_sequence, Sequence(static_cast<int32_t>(i)));
  }
}

TEST_F(ScriptedProducerTest, ABatchStoredLongAgoIsASuccessWithoutAnOffset) {
  answer_with([](size_t, const auto&) { return ErrorCode::kDuplicateSequenceNumber; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    Producer producer(*cluster, quick());
    producer.start();
    auto result = co_await sent(producer, "v");
    EXPECT_TRUE(result);
    EXPECT_EQ(result->offset, Offset(-1));
    co_await producer.close();
    co_await cluster->close();
  });
}

TEST_F(ScriptedProducerTest, AnErrorThatStaysIsTheResultAndTheNextEpochBegins) {
  answer_with(
      [](size_t number, const auto&) { return number == 1 ? ErrorCode::kInvalidRecord : ErrorCode::kNone; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    Producer producer(*cluster, quick());
    producer.start();
    EXPECT_TRUE(co_await sent(producer, "v"));
    auto refused = co_await sent(producer, "bad");
    EXPECT_FALSE(refused);
    EXPECT_TRUE(refused.error().is(ErrorCode::kInvalidRecord));
    EXPECT_FALSE(refused.error().is_retriable());
    EXPECT_TRUE(co_await sent(producer, "v"));
    co_await producer.close();
    co_await cluster->close();
  });
  ASSERT_EQ(seen_.size(), 3u);
  EXPECT_EQ(seen_[1].header.base_sequence, Sequence(1));
  EXPECT_EQ(seen_[2].header.producer_epoch, ProducerEpoch(1));
  EXPECT_EQ(seen_[2].header.base_sequence, Sequence(0));
}

TEST_F(ScriptedProducerTest, ABrokenSequenceBeginsTheNextEpochAndNothingIsLost) {
  // The broker has lost what it knew of the producer.
  answer_with([](size_t, const BatchHeader& header) {
    bool is_broken = header.producer_epoch == ProducerEpoch(0) && header.base_sequence > Sequence(0);
    return is_broken ? ErrorCode::kOutOfOrderSequenceNumber : ErrorCode::kNone;
  });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    Producer producer(*cluster, quick());
    producer.start();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(co_await sent(producer, "v")) << i;
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(seen_.back().header.producer_epoch, ProducerEpoch(1));
  EXPECT_EQ(seen_.back().header.base_sequence, Sequence(2));
}

TEST_F(ScriptedProducerTest, AfterTheLastEpochComesAnotherId) {
  first_epoch_ = ProducerEpoch(INT16_MAX);
  answer_with(
      [](size_t number, const auto&) { return number == 0 ? ErrorCode::kInvalidRecord : ErrorCode::kNone; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    Producer producer(*cluster, quick());
    producer.start();
    EXPECT_FALSE(co_await sent(producer, "bad"));
    EXPECT_TRUE(co_await sent(producer, "v"));
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(seen_.back().header.producer_id, ProducerId(101));
}

TEST_F(ScriptedProducerTest, WhatIsNotDeliveredInTimeFailsAndIsNotSentTwice) {
  bool is_silent = true;
  answer_with(
      [&](size_t, const auto&) { return is_silent ? std::nullopt : std::optional(ErrorCode::kNone); });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.delivery_timeout = 7s;
    Producer producer(*cluster, options);
    producer.start();
    MonotonicTime begun = world_.now();
    auto late = co_await sent(producer, "late");
    EXPECT_FALSE(late);
    EXPECT_EQ(late.error().cause, ClientErrc::kTimeout);
    EXPECT_TRUE(late.error().leaves_doubt());
    EXPECT_GE(world_.now() - begun, 7s);
    EXPECT_LE(world_.now() - begun, 12s);
    is_silent = false;
    EXPECT_TRUE(co_await sent(producer, "v"));
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(seen_.back().header.producer_epoch, ProducerEpoch(1));
  EXPECT_EQ(seen_.back().header.base_sequence, Sequence(0));
}

TEST_F(ScriptedProducerTest, LimitsAreErrorsAtOnceAndCloseEndsWhatIsOpen) {
  answer_with([](size_t, const auto&) { return std::nullopt; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.buffer_bytes_max = 1'000;
    options.request_bytes_max = 800;
    Producer producer(*cluster, options);
    producer.start();
    EXPECT_EQ((co_await sent(producer, std::string(900, 'x'))).error().cause, ClientErrc::kOverLimit);
    auto open = producer.send("t", kZero, record_of(std::string(700, 'x')));
    EXPECT_EQ((co_await sent(producer, std::string(700, 'x'))).error().cause, ClientErrc::kOverLimit);
    co_await producer.close();
    EXPECT_EQ((co_await open.wait()).error().cause, ClientErrc::kStopped);
    EXPECT_EQ((co_await sent(producer, "v")).error().cause, ClientErrc::kStopped);
    co_await cluster->close();
  });
}

TEST_F(ScriptedProducerTest, ABatchThatFindsTheRequestFullTakesItsNumberOnlyWhenItGoes) {
  answer_with([](size_t, const auto&) { return ErrorCode::kNone; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.request_bytes_max = 900;
    Producer producer(*cluster, options);
    producer.start();
    for (int round = 0; round < 2; ++round) {
      auto first = producer.send("t", kZero, record_of(std::string(700, 'x')));
      auto second = producer.send("t", PartitionIndex(1), record_of(std::string(700, 'y')));
      EXPECT_TRUE(co_await first.wait());
      EXPECT_TRUE(co_await second.wait());
    }
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(broker_.asked[protocol::ApiKey::kProduce], 4u);
  ASSERT_EQ(seen_.size(), 4u);
  for (size_t i = 0; i < seen_.size(); ++i) {
    EXPECT_EQ(seen_[i].header.base_sequence, Sequence(static_cast<int32_t>(i / 2))) << i;
  }
}

TEST_F(ScriptedProducerTest, PartitionsThatAreLookedUpInTwoLivesOfATopicAreSentToTheirOwn) {
  answer_with([](size_t, const auto&) { return ErrorCode::kNone; });
  broker_.lead_two_lives("t");
  run([&]() -> Task<> {
    ClusterOptions cluster_options = this->cluster_options();
    cluster_options.metadata_age_max = 0ms;
    Cluster cluster(client_node_.process(), executor(), cluster_options);
    Producer producer(cluster, quick());
    producer.start();
    auto first = producer.send("t", kZero, record_of("v"));
    auto second = producer.send("t", PartitionIndex(1), record_of("v"));
    EXPECT_EQ((co_await first.wait())->topic, ScriptedBroker::id_of("second"));
    EXPECT_EQ((co_await second.wait())->topic, ScriptedBroker::id_of("first"));
    co_await producer.close();
    co_await cluster.close();
  });
  ASSERT_EQ(seen_.size(), 2u);
  EXPECT_EQ(seen_[0].topic, ScriptedBroker::id_of("second"));
  EXPECT_EQ(seen_[1].topic, ScriptedBroker::id_of("first"));
  EXPECT_EQ(seen_[1].partition, PartitionIndex(1));
}

TEST_F(ScriptedProducerTest, WhatBecomesDueWhileAnotherTopicIsLookedUpIsSent) {
  answer_with([](size_t, const auto&) { return ErrorCode::kNone; });
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.linger = 50ms;
    Producer producer(*cluster, options);
    producer.start();
    co_await producer.send("t", kZero, record_of("v")).wait();
    broker_.on<protocol::MetadataRequest>([this](const auto& request, int16_t) {
      network_.set_partitioned("client", "broker0", true);
      world_.after(1s, [this] { network_.heal(); });
      protocol::MetadataResponse response;
      auto& broker = response.brokers.emplace_back();
      broker.host = "broker0";
      broker.port = ScriptedBroker::kPort;
      response.topics.emplace_back().name = request.topics->at(0).name;
      response.topics[0].error_code = ErrorCode::kTopicAuthorizationFailed;
      return response;
    });
    auto forbidden = producer.send("unreadable", kZero, record_of("v"));
    co_await runtime::sleep_for(30ms);
    auto sent = producer.send("t", kZero, record_of("v"));
    MonotonicTime begun = world_.now();
    EXPECT_TRUE(co_await sent.wait());
    EXPECT_LE(world_.now() - begun, 3s);
    EXPECT_TRUE((co_await forbidden.wait()).error().is(ErrorCode::kTopicAuthorizationFailed));
    co_await producer.close();
    co_await cluster->close();
  });
}

TEST_F(ScriptedProducerTest, ATopicThatIsNotThereIsWaitedForUntilTheTimeoutOrAnErrorThatStays) {
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.delivery_timeout = 3s;
    Producer producer(*cluster, options);
    producer.start();
    auto absent = co_await producer.send("absent", kZero, record_of("v")).wait();
    EXPECT_EQ(absent.error().cause, ClientErrc::kTimeout);
    co_await producer.close();
    co_await cluster->close();
  });
}

TEST_F(ScriptedProducerTest, AListenerHearsOfEachTryAndOfWhatIsKnownInTheEnd) {
  const std::vector<std::optional<ErrorCode>> answers = {
      std::nullopt, ErrorCode::kNone, ErrorCode::kNotLeaderOrFollower, ErrorCode::kInvalidRecord};
  answer_with([&](size_t number, const auto&) { return answers.at(number); });
  Noted noted(0);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    Producer producer(*cluster, quick(), &noted);
    producer.start();
    EXPECT_TRUE(co_await sent(producer, "v"));
    EXPECT_FALSE(co_await sent(producer, "bad"));
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(noted.lines, (std::vector<std::string>{"1 goes as 0/0", "1 has no answer", "1 goes as 0/0",
                                                   "1 NONE", "1 is stored, perhaps stored", "2 goes as 0/1",
                                                   "2 NOT_LEADER_OR_FOLLOWER", "2 goes as 0/1",
                                                   "2 INVALID_RECORD", "2 is given up"}));
}

TEST_F(ScriptedProducerTest, APlainProducerMayBeToldNotToSendAgain) {
  answer_with([](size_t number, const auto&) {
    return number == 0 ? std::nullopt : std::optional(ErrorCode::kNotLeaderOrFollower);
  });
  Noted noted(0);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions options = quick();
    options.is_idempotent = false;
    options.sends_again = false;
    Producer producer(*cluster, options, &noted);
    producer.start();
    EXPECT_TRUE((co_await sent(producer, "v")).error().leaves_doubt());
    auto refused = co_await sent(producer, "v");
    EXPECT_TRUE(refused.error().is(ErrorCode::kNotLeaderOrFollower));
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(noted.lines,
            (std::vector<std::string>{"1 goes as -1/-1", "1 has no answer", "1 is given up, perhaps stored",
                                      "2 goes as -1/-1", "2 NOT_LEADER_OR_FOLLOWER", "2 is given up"}));
}

}  // namespace
}  // namespace varve::client
