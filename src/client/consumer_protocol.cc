#include "client/consumer_protocol.h"

#include "protocol/consumer_protocol.h"
#include "protocol/message_reader.h"
#include "protocol/message_writer.h"

namespace varve::client {

using protocol::MessageReader;
using protocol::MessageWriter;

namespace {

constexpr int16_t kVersion = 3;
constexpr size_t kPartitionsWireBytes = 6;

void put_partitions(MessageWriter& writer, const std::set<TopicPartition>& partitions) {
  std::map<std::string, std::vector<PartitionIndex>> by_topic;
  for (const TopicPartition& at : partitions) by_topic[at.topic].push_back(at.partition);
  writer.count(by_topic.size(), false);
  for (const auto& [topic, indexes] : by_topic) {
    writer.string(topic, false);
    writer.count(indexes.size(), false);
    writer.items(indexes);
  }
}

void get_partitions(MessageReader& reader, std::set<TopicPartition>& out) {
  size_t topics = reader.count(false, false, kPartitionsWireBytes, sizeof(TopicPartition)).value_or(0);
  for (size_t i = 0; i < topics && reader.ok(); ++i) {
    std::string topic;
    reader.string(topic, false);
    std::vector<PartitionIndex> indexes;
    reader.items(indexes, reader.count(false, false, sizeof(int32_t), sizeof(TopicPartition)).value_or(0));
    for (PartitionIndex index : indexes) out.insert({topic, index});
  }
}

}  // namespace

Slice encode_subscription(const Subscription& subscription) {
  MessageWriter writer;
  writer.put(kVersion);
  writer.count(subscription.topics.size(), false);
  writer.items(subscription.topics, false);
  writer.bytes(std::optional<Slice>(), false, true);  // user data
  put_partitions(writer, subscription.owned);
  writer.put(subscription.generation);
  writer.string(std::optional<std::string>(), false, true);  // rack
  return writer.finish_joined();
}

std::optional<Subscription> decode_subscription(const Slice& bytes) {
  auto head = protocol::read_subscription_head(bytes.view());
  if (!head) return std::nullopt;
  MessageReader reader(bytes.sub(head->bytes, bytes.size() - head->bytes));
  Subscription subscription;
  subscription.topics = std::move(head->topics);
  std::optional<Slice> user_data;
  reader.bytes(user_data, false, true);
  if (head->version >= 1) get_partitions(reader, subscription.owned);
  if (head->version >= 2) reader.get(subscription.generation);
  std::optional<std::string> rack;
  if (head->version >= 3) reader.string(rack, false, true);
  if (!reader.ok()) return std::nullopt;
  return subscription;
}

Slice encode_assignment(const std::set<TopicPartition>& partitions) {
  MessageWriter writer;
  writer.put(kVersion);
  put_partitions(writer, partitions);
  writer.bytes(std::optional<Slice>(), false, true);
  return writer.finish_joined();
}

std::optional<std::set<TopicPartition>> decode_assignment(const Slice& bytes) {
  std::set<TopicPartition> partitions;
  // What the leader gives to nobody may come as no bytes at all.
  if (bytes.empty()) return partitions;
  MessageReader reader(bytes);
  int16_t version = 0;
  reader.get(version);
  if (version < 0) return std::nullopt;
  get_partitions(reader, partitions);
  if (!reader.ok()) return std::nullopt;
  return partitions;
}

}  // namespace varve::client
