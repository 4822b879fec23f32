// What tests of Produce share: a whole broker, and requests of one batch.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/broker_fixture.h"
#include "sim/requests.h"

namespace varve::broker {

using ProduceRow = protocol::ProduceResponse::PartitionProduceResponse;

class ProduceTest : public sim::BrokerFixture {
 protected:
  // The topic's id.
  runtime::Task<Uuid> create(sim::RawClient& client, std::string topic, int32_t partitions = 1,
                             std::vector<std::pair<std::string, std::string>> configs = {}) {
    auto reply = co_await client.ask(sim::create_request(topic, partitions, std::move(configs)), 7);
    EXPECT_EQ(reply.topics.at(0).error_code, protocol::ErrorCode::kNone);
    co_return reply.topics.at(0).topic_id;
  }
  // The answer for one batch to partition 0.
  runtime::Task<ProduceRow> produce(sim::RawClient& client, std::string topic, Slice batch,
                                    int16_t version = 9) {
    auto reply = co_await client.ask(sim::produce_request(topic, {{0, std::move(batch)}}), version);
    co_return reply.responses.at(0).partition_responses.at(0);
  }
  // All batches of a partition.
  runtime::Task<Slice> stored(sim::RawClient& client, std::string topic, int32_t partition = 0) {
    sim::FetchSpec spec;
    spec.partitions = {{partition, 0}};
    auto reply = co_await client.ask(sim::fetch_request(topic, Uuid{}, spec), 11);
    co_return reply.responses.at(0).partitions.at(0).records->joined();
  }
  static size_t records_of(const Slice& batches) {
    size_t count = 0;
    for (ByteView rest = batches.view(); !rest.empty();) {
      auto batch = protocol::records::BatchView::first_of(rest);
      if (!batch) break;
      count += static_cast<size_t>(batch->header().record_count);
      rest = rest.subspan(batch->bytes().size());
    }
    return count;
  }
  static Slice with_byte(const Slice& batch, size_t at, uint8_t value) {
    std::vector<uint8_t> bytes(batch.view().begin(), batch.view().end());
    bytes[at] = value;
    return Slice::take(std::move(bytes));
  }
};

}  // namespace varve::broker
