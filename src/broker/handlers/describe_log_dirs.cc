#include <algorithm>
#include <map>
#include <set>

#include "broker/handlers/authorization.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using metadata::MetadataImage;
using metadata::TopicView;
using protocol::DescribeLogDirsRequest;
using protocol::DescribeLogDirsResponse;
using protocol::ErrorCode;
using TopicRow = DescribeLogDirsResponse::DescribeLogDirsTopic;

// All records are in the object store, which is told as one folder.
constexpr const char* kLogDir = "/object-store";
// An object store has no size that fills up; Kafka's word for "cannot be told".
constexpr int64_t kUnknownBytes = -1;
// So that the core does other work between.
constexpr size_t kPartitionsAtOnce = 1'000;

// Indexes that are asked for, by topic. nullopt: all of all topics.
using Wanted = std::optional<std::map<std::string, std::set<PartitionIndex>, std::less<>>>;

Wanted wanted_of(const DescribeLogDirsRequest& request) {
  if (!request.topics) return std::nullopt;
  Wanted wanted(std::in_place);
  for (const auto& topic : *request.topics) {
    (*wanted)[topic.topic].insert(topic.partitions.begin(), topic.partitions.end());
  }
  return wanted;
}

struct Place {
  size_t topic;
  size_t partition;
};

// Each partition lies with the broker that Metadata names to the same client, and only there: tools add up what all
// brokers answer.
struct Own {
  std::vector<TopicRow> topics;
  std::vector<PartitionHandle> partitions;
  std::vector<Place> places;
};

void add_topic(const MetadataImage& image, const TopicView& topic, const std::set<PartitionIndex>* indexes,
               BrokerId self, std::string_view rack, Own& own) {
  TopicRow rows;
  rows.name = topic.name;
  for (size_t i = 0; i < topic.partitions.size(); ++i) {
    PartitionIndex index(static_cast<int32_t>(i));
    if (indexes != nullptr && !indexes->contains(index)) continue;
    if (image.owner(topic.partitions[i], rack) != self) continue;
    own.partitions.push_back(topic.partitions[i]);
    own.places.push_back({own.topics.size(), rows.partitions.size()});
    rows.partitions.emplace_back().partition_index = index;
  }
  if (!rows.partitions.empty()) own.topics.push_back(std::move(rows));
}

Own own_partitions(const MetadataImage& image, const Wanted& wanted, BrokerId self, std::string_view rack) {
  Own own;
  if (!wanted) {
    for (const auto& [name, topic] : image.topics_by_name) add_topic(image, *topic, nullptr, self, rack, own);
    return own;
  }
  for (const auto& [name, indexes] : *wanted) {
    const TopicView* topic = image.find_topic(name);
    if (topic != nullptr) add_topic(image, *topic, &indexes, self, rack, own);
  }
  return own;
}

// Bytes of each; 0 of what has just been deleted.
runtime::Task<std::vector<uint64_t>> stored_bytes(Services& services,
                                                  std::vector<PartitionHandle> partitions) {
  std::vector<uint64_t> sizes;
  sizes.reserve(partitions.size());
  while (sizes.size() < partitions.size()) {
    auto first = partitions.begin() + static_cast<ptrdiff_t>(sizes.size());
    size_t count = std::min(kPartitionsAtOnce, partitions.size() - sizes.size());
    std::vector<PartitionHandle> some(first, first + static_cast<ptrdiff_t>(count));
    auto of_some = co_await runtime::call(
        services.runtime.core(), [&metadata = services.metadata, some = std::move(some)] {
          std::vector<uint64_t> found;
          for (PartitionHandle partition : some)
            found.push_back(metadata.state().stored_bytes(partition).value_or(0));
          return found;
        });
    sizes.insert(sizes.end(), of_some.begin(), of_some.end());
  }
  co_return sizes;
}

}  // namespace

HandlerTask<DescribeLogDirsResponse> handle_describe_log_dirs(Services& services,
                                                              const RequestContext& context,
                                                              DescribeLogDirsRequest request) {
  DescribeLogDirsResponse response;
  if (!is_allowed_on_cluster(services, context, Operation::kDescribe)) {
    response.error_code = ErrorCode::kClusterAuthorizationFailed;
    co_return response;
  }
  SyncedImage synced = co_await synced_image(services, context.deadline);
  Own own = own_partitions(*synced.image, wanted_of(request), services.settings.broker_id,
                           rack_of(context, *synced.image));
  std::vector<uint64_t> sizes = co_await stored_bytes(services, own.partitions);
  for (size_t i = 0; i < sizes.size(); ++i) {
    own.topics[own.places[i].topic].partitions[own.places[i].partition].partition_size =
        static_cast<int64_t>(sizes[i]);
  }
  auto& folder = response.results.emplace_back();
  folder.log_dir = kLogDir;
  folder.total_bytes = kUnknownBytes;
  folder.usable_bytes = kUnknownBytes;
  folder.topics = std::move(own.topics);
  co_return response;
}

}  // namespace varve::broker
