// A batch that is under way when its topic is refused.
#include <gtest/gtest.h>

#include "client/producer.h"
#include "client/producer_testing.h"
#include "client/scripted_broker_testing.h"
#include "protocol/messages/init_producer_id.h"

namespace varve::client {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using runtime::Task;

class BatchUnderWay : public ScriptedTest {
 protected:
  // Most, so that others than the one that does not answer are asked about topics.
  static constexpr int kBrokers = 20;

  BatchUnderWay() {
    broker_.on<protocol::InitProducerIdRequest>([](const auto&, int16_t) {
      protocol::InitProducerIdResponse response;
      response.producer_id = ProducerId(100);
      response.producer_epoch = ProducerEpoch(0);
      return response;
    });
    know_topics(broker_);
    for (int i = 1; i < kBrokers; ++i) {
      others_.push_back(std::make_unique<ScriptedBroker>(world_, network_, "broker" + std::to_string(i)));
      know_topics(*others_.back());
    }
    broker_.on_frame(protocol::ApiKey::kProduce,
                     [this](const Slice& body, int16_t version, int32_t correlation) {
                       auto frame = protocol::response_frame(stored(body, version), version, correlation);
                       held_.insert(held_.end(), frame.begin(), frame.end());
                       return is_holding_ ? std::vector<Slice>() : std::exchange(held_, {});
                     });
  }

  ProduceResponse stored(const Slice& body, int16_t version) {
    auto request = protocol::decode_message<ProduceRequest>(body, version);
    CHECK(request, "{}", request.error().message);
    ProduceResponse response;
    for (const auto& topic : request->topic_data) {
      auto& rows = response.responses.emplace_back();
      rows.name = topic.name;
      rows.topic_id = topic.topic_id;
      for (const auto& data : topic.partition_data) {
        auto& row = rows.partition_responses.emplace_back();
        row.index = data.index;
        row.base_offset = Offset(next_offset_++);
      }
    }
    return response;
  }
  // Tells of topics; all of them lie at broker 0.
  void know_topics(ScriptedBroker& broker) {
    broker.on<protocol::MetadataRequest>([this](const protocol::MetadataRequest& asked, int16_t) {
      protocol::MetadataResponse response;
      for (int i = 0; i < kBrokers; ++i) {
        auto& row = response.brokers.emplace_back();
        row.node_id = BrokerId(i);
        row.host = "broker" + std::to_string(i);
        row.port = ScriptedBroker::kPort;
      }
      response.controller_id = BrokerId(0);
      if (!asked.topics) return response;
      for (const auto& topic : *asked.topics) {
        auto& row = response.topics.emplace_back();
        row.name = topic.name;
        row.topic_id = ScriptedBroker::id_of(*topic.name);
        if (is_denied_ && *topic.name == "t") {
          row.error_code = ErrorCode::kTopicAuthorizationFailed;
          continue;
        }
        auto& partition = row.partitions.emplace_back();
        partition.partition_index = kZero;
        partition.leader_id = BrokerId(0);
      }
      return response;
    });
  }

  std::vector<std::unique_ptr<ScriptedBroker>> others_;
  bool is_denied_ = false;
  bool is_holding_ = false;
  std::vector<Slice> held_;
  int64_t next_offset_ = 0;
};

TEST_F(BatchUnderWay, HasTheResultOfItsAnswerThoughItsTopicIsRefusedMeanwhile) {
  Noted noted(0);
  run([&]() -> Task<> {
    ClusterOptions options = cluster_options();
    options.metadata_age_max = 1s;
    Cluster cluster(client_node_.process(), executor(), options);
    ProducerOptions quick;
    quick.linger = 0ms;
    Producer producer(cluster, quick, &noted);
    producer.start();
    EXPECT_TRUE(co_await producer.send("t", kZero, record_of("first")).wait());
    co_await runtime::sleep_for(700ms);
    is_holding_ = true;
    auto under_way = producer.send("t", kZero, record_of("under way"));
    co_await runtime::sleep_for(500ms);
    is_denied_ = true;
    EXPECT_FALSE(co_await producer.send("t", kZero, record_of("refused")).wait());
    EXPECT_FALSE(under_way.is_set());
    is_holding_ = false;
    EXPECT_TRUE(co_await producer.send("u", kZero, record_of("elsewhere")).wait());
    EXPECT_TRUE(co_await under_way.wait());
    EXPECT_EQ(producer.buffered_bytes(), 0u);
    co_await producer.close();
    co_await cluster.close();
  });
  EXPECT_EQ(std::ranges::count(noted.lines, "2 is stored"), 1);
  EXPECT_EQ(std::ranges::count(noted.lines, "3 is given up"), 1);
}

TEST_F(BatchUnderWay, MayBeStoredIfTheProducerIsClosedMeanwhile) {
  Noted noted(0);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    ProducerOptions quick;
    quick.linger = 0ms;
    Producer producer(*cluster, quick, &noted);
    producer.start();
    is_holding_ = true;
    auto under_way = producer.send("t", kZero, record_of("under way"));
    co_await runtime::sleep_for(500ms);
    co_await producer.close();
    EXPECT_TRUE(under_way.is_set());
    co_await cluster->close();
  });
  EXPECT_EQ(noted.lines.back(), "1 is given up, perhaps stored");
}

}  // namespace
}  // namespace varve::client
