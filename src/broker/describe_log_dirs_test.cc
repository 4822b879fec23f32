// DescribeLogDirs: how much the object store holds of each partition.
#include "protocol/messages/describe_log_dirs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/produce_testing.h"
#include "protocol/messages/delete_records.h"

namespace varve::broker {
namespace {

using protocol::DescribeLogDirsRequest;
using protocol::DescribeLogDirsResponse;
using protocol::ErrorCode;
using runtime::Task;
using sim::RawClient;
using ::testing::IsEmpty;

class DescribeLogDirsTest : public ProduceTest {
 protected:
  static DescribeLogDirsRequest request_for(
      std::vector<std::pair<std::string, std::vector<int32_t>>> topics) {
    DescribeLogDirsRequest request;
    request.topics.emplace();
    for (auto& [name, partitions] : topics) {
      auto& row = request.topics->emplace_back();
      row.topic = name;
      for (int32_t partition : partitions) row.partitions.push_back(PartitionIndex(partition));
    }
    return request;
  }
  static DescribeLogDirsRequest request_for_all() {
    DescribeLogDirsRequest request;
    request.topics = std::nullopt;
    return request;
  }
  // Sizes by "topic/partition".
  static std::map<std::string, int64_t> sizes_of(const DescribeLogDirsResponse& response) {
    std::map<std::string, int64_t> sizes;
    for (const auto& topic : response.results.at(0).topics) {
      for (const auto& partition : topic.partitions) {
        sizes[fmt::format("{}/{}", topic.name, partition.partition_index)] = partition.partition_size;
        EXPECT_EQ(partition.offset_lag, 0);
        EXPECT_FALSE(partition.is_future_key);
      }
    }
    return sizes;
  }
};

TEST_F(DescribeLogDirsTest, OneFolderHoldsAllPartitionsWithTheBytesOfTheirBatches) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 2);
    co_await create(client, "u");
    Slice batch = sim::make_batch(std::string(100, 'x'));
    auto bytes = static_cast<int64_t>(batch.size());
    for (int i = 0; i < 3; ++i) co_await produce(client, "t", batch);
    for (int16_t version = DescribeLogDirsRequest::kMinVersion;
         version <= DescribeLogDirsRequest::kMaxVersion; ++version) {
      auto reply = co_await client.ask(request_for_all(), version);
      EXPECT_EQ(reply.error_code, ErrorCode::kNone) << version;
      EXPECT_EQ(reply.results.size(), 1u) << version;
      EXPECT_EQ(reply.results.at(0).error_code, ErrorCode::kNone) << version;
      EXPECT_EQ(reply.results.at(0).log_dir, "/object-store") << version;
      EXPECT_EQ(reply.results.at(0).total_bytes, -1) << version;
      EXPECT_EQ(reply.results.at(0).usable_bytes, -1) << version;
      EXPECT_EQ(sizes_of(reply), (std::map<std::string, int64_t>{{"t/0", 3 * bytes}, {"t/1", 0}, {"u/0", 0}}))
          << version;
    }
    co_await client.ask(sim::delete_records_request("t", {{0, 2}}), 2);
    EXPECT_EQ(sizes_of(co_await client.ask(request_for_all(), 4)).at("t/0"), bytes);
  });
}

TEST_F(DescribeLogDirsTest, OnlyWhatIsAskedForIsToldAndWhatIsNotThereIsLeftOut) {
  start_brokers(1);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 3);
    auto some = co_await client.ask(request_for({{"t", {0, 9, -1}}, {"nope", {0}}, {"t", {2}}}), 4);
    EXPECT_EQ(sizes_of(some), (std::map<std::string, int64_t>{{"t/0", 0}, {"t/2", 0}}));
    auto none = co_await client.ask(request_for({}), 4);
    EXPECT_EQ(none.results.size(), 1u);
    EXPECT_THAT(none.results.at(0).topics, IsEmpty());
  });
}

TEST_F(DescribeLogDirsTest, EachPartitionIsToldByTheBrokerThatMetadataNames) {
  start_brokers(3);
  run([&]() -> Task<> {
    RawClient client = co_await connect();
    co_await create(client, "t", 30);
    auto metadata = co_await client.ask(sim::metadata_request({"t"}), 9);
    size_t told = 0;
    for (int32_t broker : {0, 1, 2}) {
      RawClient asker = co_await connect(static_cast<size_t>(broker));
      auto reply = co_await asker.ask(request_for_all(), 4);
      for (const auto& partition : reply.results.at(0).topics.at(0).partitions) {
        ++told;
        auto index = static_cast<size_t>(partition.partition_index.value());
        EXPECT_EQ(metadata.topics.at(0).partitions.at(index).leader_id, BrokerId(broker)) << index;
      }
    }
    EXPECT_EQ(told, 30u);
  });
}

}  // namespace
}  // namespace varve::broker
