// A whole broker: starting, stopping, and one record all the way.
#include "broker/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/messages/api_versions.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/metadata.h"
#include "protocol/messages/produce.h"
#include "protocol/records/builder.h"
#include "sim/broker_fixture.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using runtime::Task;

class BrokerTest : public sim::BrokerFixture {};

Slice batch_of(std::string_view value) {
  protocol::records::BatchBuilder builder({});
  protocol::records::NewRecord record;
  record.timestamp = WallTime(1'000);
  record.value = as_bytes(value);
  builder.add(record);
  return Slice::take(builder.build());
}

TEST_F(BrokerTest, ARecordIsProducedAndRead) {
  start_brokers(1);
  run([&]() -> Task<> {
    sim::RawClient client = co_await connect();
    protocol::MetadataRequest metadata;
    metadata.topics->emplace_back().name = "t";
    auto known = co_await client.ask(metadata, 12);
    EXPECT_EQ(known.topics.at(0).error_code, ErrorCode::kNone);
    protocol::ProduceRequest produce;
    produce.acks = -1;
    produce.timeout_ms = 30'000;
    produce.topic_data.emplace_back().name = "t";
    produce.topic_data[0].partition_data.emplace_back().records = batch_of("hello");
    auto produced = co_await client.ask(produce, 9);
    EXPECT_EQ(produced.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
    EXPECT_EQ(produced.responses.at(0).partition_responses.at(0).base_offset, Offset(0));
    protocol::FetchRequest fetch;
    fetch.max_wait_ms = 500;
    fetch.min_bytes = 1;
    fetch.topics.emplace_back().topic_id = known.topics.at(0).topic_id;
    fetch.topics[0].partitions.emplace_back().partition_max_bytes = 1 << 20;
    auto fetched = co_await client.ask(fetch, 13);
    const auto& partition = fetched.responses.at(0).partitions.at(0);
    EXPECT_EQ(partition.error_code, ErrorCode::kNone);
    EXPECT_EQ(partition.high_watermark, Offset(1));
    EXPECT_THAT(std::string(as_text(partition.records->joined().view())), ::testing::HasSubstr("hello"));
  });
}

}  // namespace
}  // namespace varve::broker
