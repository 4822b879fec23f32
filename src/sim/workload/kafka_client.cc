#include "sim/workload/kafka_client.h"

#include "protocol/messages/metadata.h"

namespace varve::sim {

using protocol::ErrorCode;
using runtime::Task;

namespace {

// Metadata answers with topic ids from this version on.
constexpr int16_t kFirstVersionWithIds = 10;

}  // namespace

KafkaClient::KafkaClient(WorkloadContext& context, Process& process, std::string name)
    : context_(context), process_(process), name_(std::move(name)), random_(context.world.random().fork()) {}

const std::string& KafkaClient::other_host(const std::string& host) {
  while (context_.hosts.size() > 1) {
    const std::string& other = any_host();
    if (other != host) return other;
  }
  return context_.hosts.front();
}

Task<std::shared_ptr<KafkaConnection>> KafkaClient::connect(std::string host) {
  auto found = connections_.find(host);
  if (found != connections_.end() && !found->second->is_closed()) co_return found->second;
  connections_.erase(host);
  auto stream = co_await process_.network().connect({host, kKafkaPort}, now() + kConnectTimeout);
  if (!stream) co_return nullptr;
  auto opened = client::Connection::open(executor(), scope_, std::move(*stream), {.client_id = name_});
  auto connection = std::make_shared<KafkaConnection>(std::move(opened), ++context_.connections);
  auto [at, is_new] = connections_.insert_or_assign(host, connection);
  co_return at->second;
}

Task<std::optional<KnownTopic>> KafkaClient::find_topic(std::string host, std::string topic) {
  MonotonicTime asked_at = now();
  const TopicLife* known = context_.topics.find_certain(topic);
  Uuid known_id = known == nullptr ? Uuid() : known->id;
  uint32_t told_before = context_.topics.told_by(host, known_id);
  protocol::MetadataRequest request;
  request.topics.emplace();
  request.topics->emplace_back().name = topic;
  request.allow_auto_topic_creation = false;
  int16_t version = draw_version<protocol::MetadataRequest>(kFirstVersionWithIds);
  auto response = co_await ask(host, std::move(request), version);
  if (!response || response->topics.empty()) co_return std::nullopt;
  const auto& row = response->topics.front();
  if (row.error_code == ErrorCode::kUnknownTopicOrPartition) {
    context_.topics.called_absent(topic, asked_at, who(host, *this));
    co_return std::nullopt;
  }
  if (row.error_code != ErrorCode::kNone) co_return std::nullopt;
  auto partitions = static_cast<uint32_t>(row.partitions.size());
  context_.topics.told_of(topic, row.topic_id, partitions);
  // A later life of the name is another topic.
  context_.topics.host_told(host, row.topic_id, partitions, row.topic_id == known_id ? told_before : 0);
  co_return KnownTopic{row.topic_id, partitions};
}

std::string who(const std::string& host, const KafkaClient& client) {
  return fmt::format("{} to {}", host, client.name());
}

}  // namespace varve::sim
