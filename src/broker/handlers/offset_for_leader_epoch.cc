#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::OffsetForLeaderEpochRequest;
using protocol::OffsetForLeaderEpochResponse;
using Topic = OffsetForLeaderEpochRequest::OffsetForLeaderTopic;
using Asked = OffsetForLeaderEpochRequest::OffsetForLeaderPartition;
using ResultRow = OffsetForLeaderEpochResponse::EpochEndOffset;

constexpr int32_t kNoEpoch = -1;

// Where in the answer a query's result goes.
struct Place {
  size_t topic;
  size_t partition;
};

ErrorCode early_error(const SyncedImage& synced, const metadata::TopicView* topic, const Asked& asked) {
  if (!find_partition(topic, asked.partition))
    return synced.is_certain ? ErrorCode::kUnknownTopicOrPartition : kCannotTellPartition;
  return leader_epoch_error(*synced.image, asked.current_leader_epoch);
}

// Records have the epoch of the log's generation, whenever they were written: it ends at the high watermark, and every
// earlier one ended where the partition begins. Of a later one nothing is known.
bool has_end(const metadata::MetadataImage& image, int32_t epoch) {
  return epoch != kNoEpoch && epoch <= leader_epoch(image);
}

storage::OffsetQuery query_of(const metadata::MetadataImage& image, PartitionHandle partition,
                              int32_t epoch) {
  storage::OffsetQuery query;
  query.partition = partition;
  query.timestamp = epoch == leader_epoch(image) ? storage::kLatestTimestamp : storage::kEarliestTimestamp;
  return query;
}

}  // namespace

HandlerTask<OffsetForLeaderEpochResponse> handle_offset_for_leader_epoch(
    Services& services, const RequestContext& context, OffsetForLeaderEpochRequest request) {
  MonotonicTime deadline = context.deadline;
  // Brokers may ask about everything.
  bool is_broker = is_allowed_on_cluster(services, context, Operation::kClusterAction);
  SyncedImage synced{services.metadata.image(), true};
  // For partitions that are there the fetcher makes its own sync.
  auto find_topic = [&](const Topic& topic) { return synced.image->find_topic(topic.topic); };
  if (!knows_all(request.topics, find_topic, &Topic::partitions, &Asked::partition))
    synced = co_await synced_image(services, deadline);

  OffsetForLeaderEpochResponse response;
  std::vector<storage::OffsetQuery> queries;
  std::vector<Place> places;
  for (size_t t = 0; t < request.topics.size(); ++t) {
    const Topic& topic = request.topics[t];
    const metadata::TopicView* view = synced.image->find_topic(topic.topic);
    bool may_describe =
        is_broker || is_allowed(services, context, Operation::kDescribe, ResourceType::kTopic, topic.topic);
    auto& rows = response.topics.emplace_back();
    rows.topic = topic.topic;
    for (size_t p = 0; p < topic.partitions.size(); ++p) {
      const Asked& asked = topic.partitions[p];
      ResultRow& row = rows.partitions.emplace_back();
      row.partition = asked.partition;
      row.error_code = may_describe ? early_error(synced, view, asked) : ErrorCode::kTopicAuthorizationFailed;
      if (row.error_code != ErrorCode::kNone || !has_end(*synced.image, asked.leader_epoch)) continue;
      queries.push_back(query_of(
          *synced.image, view->partitions[static_cast<size_t>(asked.partition.value())], asked.leader_epoch));
      places.push_back({t, p});
    }
  }
  if (queries.empty()) co_return response;
  auto found = co_await services.fetcher.list_offsets(std::move(queries), false, deadline);
  std::shared_ptr<const metadata::MetadataImage> now = services.metadata.image();
  for (size_t i = 0; i < found.size(); ++i) {
    const Topic& topic = request.topics[places[i].topic];
    const Asked& asked = topic.partitions[places[i].partition];
    ResultRow& row = response.topics[places[i].topic].partitions[places[i].partition];
    row.error_code =
        unless_made_again(list_offsets_error_of(found[i].error), *now, topic.topic, asked.partition);
    if (row.error_code != ErrorCode::kNone) continue;
    row.leader_epoch = asked.leader_epoch;
    row.end_offset = found[i].offset;
  }
  co_return response;
}

}  // namespace varve::broker
