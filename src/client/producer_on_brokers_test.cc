// The producer against whole brokers.
#include "client/fetcher.h"
#include "client/producer_testing.h"
#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::client {
namespace {

using protocol::ErrorCode;
using runtime::Completion;
using runtime::Task;

class BrokerProducerTest : public sim::BrokerFixture {
 protected:
  std::unique_ptr<Cluster> make_cluster() {
    ClusterOptions options;
    for (auto& broker : brokers_) options.bootstrap.push_back({broker->node().host(), kKafkaPort});
    return std::make_unique<Cluster>(client_node_.process(), client_node_.process().io(0), options);
  }
  static Task<> create(Cluster& cluster, std::string topic, int32_t partitions) {
    auto made = co_await cluster.ask_controller(sim::create_request(topic, partitions));
    EXPECT_TRUE(made);
    EXPECT_EQ(made->topics.at(0).error_code, ErrorCode::kNone);
  }
  // Everything from the start of a partition on.
  static Task<std::vector<ConsumedRecord>> read(Cluster& cluster, TopicPartition at, size_t count) {
    Fetcher fetcher(cluster, {});
    auto topic = co_await cluster.topic(at.topic);
    auto start = co_await fetcher.find_end(at, OffsetReset::kEarliest);
    EXPECT_TRUE(topic && start);
    fetcher.put(at, topic->id, *start);
    std::vector<ConsumedRecord> all;
    MonotonicTime until = cluster.now() + 60s;
    while (all.size() < count && cluster.now() < until) {
      co_await fetcher.advance();
      for (ConsumedRecord& record : fetcher.take(7)) all.push_back(std::move(record));
      if (all.size() < count) co_await fetcher.wait(cluster.now() + 1s);
    }
    co_await fetcher.close();
    co_return all;
  }
};

TEST_F(BrokerProducerTest, RecordsOfEveryCodecComeBackAsTheyWent) {
  start_brokers(2);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    for (Codec codec : kAllCodecs) {
      std::string topic = "c" + std::to_string(static_cast<int>(codec));
      co_await create(*cluster, topic, 2);
      ProducerOptions options;
      options.codec = codec;
      Producer producer(*cluster, options);
      producer.start();
      std::vector<Completion<Producer::Result>> results;
      for (int i = 0; i < 60; ++i) {
        NewRecord record = record_of(std::to_string(i));
        if (i % 7 == 0) record.key = std::nullopt;
        if (i % 11 == 0) record.value = std::nullopt;
        if (i % 5 == 0) record.headers = {{"h", "1"}, {"empty", std::nullopt}};
        record.timestamp = WallTime(1'000 + i);
        results.push_back(producer.send(topic, PartitionIndex(i % 2), record));
      }
      for (size_t i = 0; i < results.size(); ++i) {
        auto result = co_await results[i].wait();
        EXPECT_TRUE(result);
        EXPECT_EQ(result->offset, Offset(static_cast<int64_t>(i / 2)));
      }
      auto records = co_await read(*cluster, {topic, PartitionIndex(1)}, 30);
      EXPECT_EQ(records.size(), 30u);
      for (size_t i = 0; i < records.size(); ++i) {
        size_t number = 2 * i + 1;
        EXPECT_EQ(records[i].offset, Offset(static_cast<int64_t>(i)));
        EXPECT_EQ(records[i].timestamp, WallTime(1'000 + static_cast<int64_t>(number)));
        EXPECT_EQ(records[i].key.has_value(), number % 7 != 0);
        EXPECT_EQ(records[i].value, number % 11 == 0 ? std::nullopt : std::optional(std::to_string(number)));
        EXPECT_EQ(records[i].headers.size(), number % 5 == 0 ? 2u : 0u);
      }
      co_await producer.close();
    }
    co_await cluster->close();
  });
}

TEST_F(BrokerProducerTest, ThroughLostConnectionsAndCrashesEachRecordIsStoredOnceAndInOrder) {
  start_brokers(3);
  constexpr size_t kRecords = 300;
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    co_await create(*cluster, "t", 1);
    sim::NetworkFaults faults;
    faults.cut = 60;
    network_.set_faults(faults);
    ProducerOptions options;
    options.batch_bytes_max = 300;
    options.request_timeout = 3s;
    Producer producer(*cluster, options);
    producer.start();
    std::vector<Completion<Producer::Result>> results;
    for (size_t i = 0; i < kRecords; ++i) {
      results.push_back(producer.send("t", kZero, record_of(std::to_string(i))));
      if (i % 10 == 0) co_await runtime::sleep_for(100ms);
      if (i == 150) {
        brokers_[0]->crash();
        brokers_[0]->boot();
      }
    }
    Offset last(-1);
    for (auto& result : results) {
      auto delivered = co_await result.wait();
      EXPECT_TRUE(delivered) << delivered.error().message;
      if (!delivered || delivered->offset == Offset(-1)) continue;
      EXPECT_GT(delivered->offset, last);
      last = delivered->offset;
    }
    network_.set_faults({});
    auto records = co_await read(*cluster, {"t", kZero}, kRecords);
    EXPECT_EQ(records.size(), kRecords);
    for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].value, std::to_string(i));
    co_await producer.close();
    co_await cluster->close();
  });
}

TEST_F(BrokerProducerTest, AListenerThatChangesTheBrokerInMidSequenceKeepsTheOrder) {
  start_brokers(3);
  constexpr size_t kRecords = 100;
  Noted noted(3);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    co_await create(*cluster, "t", 1);
    ProducerOptions options;
    options.batch_bytes_max = 1;
    Producer producer(*cluster, options, &noted);
    producer.start();
    for (size_t i = 0; i < kRecords; ++i) producer.send("t", kZero, record_of(std::to_string(i)));
    co_await producer.flush();
    auto records = co_await read(*cluster, {"t", kZero}, kRecords);
    EXPECT_EQ(records.size(), kRecords);
    for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].value, std::to_string(i));
    co_await producer.close();
    co_await cluster->close();
  });
  EXPECT_EQ(noted.connections.size(), 3u);
}

TEST_F(BrokerProducerTest, WithoutAcksNothingIsWaitedFor) {
  start_brokers(1);
  run([&]() -> Task<> {
    auto cluster = make_cluster();
    co_await create(*cluster, "t", 1);
    ProducerOptions options;
    options.is_idempotent = false;
    options.acks = 0;
    Producer producer(*cluster, options);
    producer.start();
    auto result = co_await producer.send("t", kZero, record_of("v")).wait();
    EXPECT_TRUE(result);
    EXPECT_EQ(result->offset, Offset(-1));
    EXPECT_EQ((co_await read(*cluster, {"t", kZero}, 1)).size(), 1u);
    co_await producer.close();
    co_await cluster->close();
  });
}

}  // namespace
}  // namespace varve::client
