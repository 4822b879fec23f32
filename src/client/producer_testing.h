// For tests of the producer.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/producer.h"

namespace varve::client {

inline constexpr PartitionIndex kZero{0};

inline NewRecord record_of(std::string value) {
  return {.key = "k", .value = std::move(value), .headers = {}, .timestamp = {}};
}

// Writes down what it hears, and sends each batch to the next broker.
class Noted final : public ProducerListener {
 public:
  explicit Noted(int32_t brokers) : brokers_(brokers) {}

  BrokerId route(const TopicPartition&, BrokerId leader) override {
    return brokers_ == 0 ? leader : BrokerId(++turn_ % brokers_);
  }
  void sending(const ProducedBatch& batch, const Cluster::ConnectionPtr& connection) override {
    EXPECT_NE(connection, nullptr);
    EXPECT_FALSE(batch.bytes.empty());
    connections.insert(connection);
    lines.push_back(fmt::format("{} goes as {}/{}", batch.number, batch.epoch, batch.first_sequence));
  }
  void answered(const ProducedBatch& batch, const ProduceTry& outcome) override {
    lines.push_back(fmt::format("{} {}", batch.number,
                                outcome.error ? protocol::error_name(*outcome.error) : "has no answer"));
  }
  void resolved(const ProducedBatch& batch, const Producer::Result& result) override {
    lines.push_back(fmt::format("{} is {}{}", batch.number, result ? "stored" : "given up",
                                batch.may_be_stored ? ", perhaps stored" : ""));
  }

  std::vector<std::string> lines;
  std::set<Cluster::ConnectionPtr> connections;

 private:
  const int32_t brokers_;
  int32_t turn_ = 0;
};

}  // namespace varve::client
