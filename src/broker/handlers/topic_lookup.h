// Reading the cluster's image, with a sync before anything is called absent (invariant 5).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "broker/handlers/request.h"
#include "broker/handlers/services.h"
#include "metadata/client/image.h"

namespace varve::broker {

struct SyncedImage {
  std::shared_ptr<const metadata::MetadataImage> image;
  // True: what is not in the image did not exist when the request came. False: this broker cannot tell.
  bool is_certain = false;
};

// When a request that gives a timeout has to be answered: at once if that is 0 or less.
MonotonicTime deadline_of(const RequestContext& context, int32_t timeout_ms);

// The image after a sync that ends by `deadline`.
runtime::Task<SyncedImage> synced_image(Services& services, MonotonicTime deadline);

// The partition, if the topic (nullptr: there is none) has it.
std::optional<PartitionHandle> find_partition(const metadata::TopicView* topic, PartitionIndex index);

// Whether every partition of a request is known. `find` gives the view of one of its topics, nullptr if there is none;
// `partitions` and `index` are where a topic lists its partitions and where these have their index: members, or functions.
template <class Topics, class Find, class Partitions, class Index>
bool knows_all(const Topics& topics, Find find, Partitions partitions, Index index) {
  for (const auto& topic : topics) {
    const metadata::TopicView* view = find(topic);
    for (const auto& partition : std::invoke(partitions, topic)) {
      if (!find_partition(view, std::invoke(index, partition))) return false;
    }
  }
  return true;
}

// Fills leader, epoch and replicas of a partition's row, of Metadata or DescribeTopicPartitions. The broker that the
// client is led to is the only replica that it is told of.
template <class Row>
void fill_leader(const metadata::MetadataImage& image, PartitionHandle partition, std::string_view rack,
                 Row& row);

// A request by name that began on the image of a topic's former life ends with "unknown", though the name has been
// made again meanwhile: that has to be retriable. `code` otherwise.
protocol::ErrorCode unless_made_again(protocol::ErrorCode code, const metadata::MetadataImage& now,
                                      std::string_view topic, PartitionIndex partition);

// Rack of the client, as its id says; "" if unknown.
std::string rack_of(const RequestContext& context, const metadata::MetadataImage& image);

// The endpoint of a broker under the listener that the client came through; nullptr if it has none.
const metadata::Endpoint* endpoint_of(const metadata::ImageBroker& broker, std::string_view listener);

// Kafka's "controller" is any live broker here; the same one for all who ask: the lowest id.
BrokerId controller_of(const metadata::MetadataImage& image);

// The leader epoch of every partition: it rises when the log is restored from the bucket.
inline int32_t leader_epoch(const metadata::MetadataImage& image) {
  return static_cast<int32_t>(image.generation.value());
}
template <class Row>
void fill_leader(const metadata::MetadataImage& image, PartitionHandle partition, std::string_view rack,
                 Row& row) {
  row.leader_epoch = leader_epoch(image);
  std::optional<BrokerId> owner = image.owner(partition, rack);
  row.leader_id = owner.value_or(BrokerId(-1));
  if (!owner) {
    row.error_code = protocol::ErrorCode::kLeaderNotAvailable;
    return;
  }
  row.replica_nodes = {*owner};
  row.isr_nodes = {*owner};
}
// kNone if the epoch a client believes in is -1 or the current one.
protocol::ErrorCode leader_epoch_error(const metadata::MetadataImage& image, int32_t client_epoch);

}  // namespace varve::broker
