#include "broker/handlers/topic_lookup.h"

#include <algorithm>

#include "broker/handlers/client_rack.h"
#include "broker/handlers/errors.h"

namespace varve::broker {

MonotonicTime deadline_of(const RequestContext& context, int32_t timeout_ms) {
  return std::min(context.deadline, context.received + std::chrono::milliseconds(std::max(timeout_ms, 0)));
}

runtime::Task<SyncedImage> synced_image(Services& services, MonotonicTime deadline) {
  auto synced = co_await services.metadata.sync(deadline);
  SyncedImage result;
  result.image = services.metadata.image();
  result.is_certain = synced.has_value();
  co_return result;
}

std::optional<PartitionHandle> find_partition(const metadata::TopicView* topic, PartitionIndex index) {
  if (topic == nullptr || index.value() < 0) return std::nullopt;
  size_t place = static_cast<size_t>(index.value());
  if (place >= topic->partitions.size()) return std::nullopt;
  return topic->partitions[place];
}

protocol::ErrorCode unless_made_again(protocol::ErrorCode code, const metadata::MetadataImage& now,
                                      std::string_view topic, PartitionIndex partition) {
  if (code != protocol::ErrorCode::kUnknownTopicOrPartition) return code;
  return find_partition(now.find_topic(topic), partition) ? kCannotTellPartition : code;
}

std::string rack_of(const RequestContext& context, const metadata::MetadataImage& image) {
  if (context.client_id.empty()) return {};
  std::set<std::string, std::less<>> racks;
  for (const auto& [id, broker] : image.brokers) {
    if (!broker.rack.empty()) racks.insert(broker.rack);
  }
  if (racks.empty()) return {};
  return client_rack(context.client_id, racks);
}

const metadata::Endpoint* endpoint_of(const metadata::ImageBroker& broker, std::string_view listener) {
  for (const metadata::Endpoint& endpoint : broker.endpoints) {
    if (endpoint.listener == listener) return &endpoint;
  }
  return nullptr;
}

BrokerId controller_of(const metadata::MetadataImage& image) {
  return image.brokers.empty() ? BrokerId(-1) : image.brokers.begin()->first;
}

protocol::ErrorCode leader_epoch_error(const metadata::MetadataImage& image, int32_t client_epoch) {
  if (client_epoch == -1 || client_epoch == leader_epoch(image)) return protocol::ErrorCode::kNone;
  return client_epoch < leader_epoch(image) ? protocol::ErrorCode::kFencedLeaderEpoch
                                            : protocol::ErrorCode::kUnknownLeaderEpoch;
}

}  // namespace varve::broker
