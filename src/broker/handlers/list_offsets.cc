#include <algorithm>
#include <map>
#include <set>

#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::ListOffsetsRequest;
using protocol::ListOffsetsResponse;
using Topic = ListOffsetsRequest::ListOffsetsTopic;
using Asked = ListOffsetsRequest::ListOffsetsPartition;
using ResultRow = ListOffsetsResponse::ListOffsetsPartitionResponse;

constexpr int64_t kEarliestPendingUpload = -6;
// Below it no number has a meaning in any version.
constexpr int64_t kLowestSpecialTimestamp = kEarliestPendingUpload;
constexpr int8_t kReadCommitted = 1;

// Which version first has a special timestamp (Kafka's ListOffsetsRequest); an older client that sends one gets
// UNSUPPORTED_VERSION.
bool is_known_in(int16_t version, int64_t timestamp) {
  switch (timestamp) {
    case storage::kMaxTimestamp:
      return version >= 7;
    case storage::kEarliestLocalTimestamp:
      return version >= 8;
    case storage::kLatestTieredTimestamp:
      return version >= 9;
    case kEarliestPendingUpload:
      return version >= 11;
    default:
      return timestamp >= kLowestSpecialTimestamp;
  }
}

// Where in the answer a query's result goes, and what asked for it.
struct Place {
  size_t topic;
  size_t partition;
  const Asked* asked;
};

std::optional<ErrorCode> early_error(const SyncedImage& synced, const metadata::TopicView* topic,
                                     const Asked& asked, int16_t version) {
  if (!is_known_in(version, asked.timestamp)) return ErrorCode::kUnsupportedVersion;
  if (!find_partition(topic, asked.partition_index))
    return synced.is_certain ? ErrorCode::kUnknownTopicOrPartition : kCannotTellPartition;
  ErrorCode epoch_error = leader_epoch_error(*synced.image, asked.current_leader_epoch);
  if (epoch_error != ErrorCode::kNone) return epoch_error;
  return std::nullopt;
}

void fill(ResultRow& row, const Asked& asked, const storage::FoundOffset& found, int16_t version,
          int32_t epoch) {
  row.error_code = list_offsets_error_of(found.error);
  if (found.error != storage::FetchErrc::kNone) return;
  row.timestamp = found.timestamp;
  row.offset = found.offset;
  if (found.offset.value() >= 0) row.leader_epoch = epoch;
  // Version 0 asks for starts of segments before a time; the one offset that is always such a start is given.
  if (version == 0 && found.offset.value() >= 0 && asked.max_num_offsets > 0) {
    row.old_style_offsets = {found.offset.value()};
  }
}

std::set<std::pair<std::string, PartitionIndex>> duplicates_of(const ListOffsetsRequest& request) {
  std::set<std::pair<std::string, PartitionIndex>> seen;
  std::set<std::pair<std::string, PartitionIndex>> duplicates;
  for (const auto& topic : request.topics) {
    for (const Asked& asked : topic.partitions) {
      std::pair key(topic.name, asked.partition_index);
      if (!seen.insert(key).second) duplicates.insert(key);
    }
  }
  return duplicates;
}

}  // namespace

HandlerTask<ListOffsetsResponse> handle_list_offsets(Services& services, const RequestContext& context,
                                                     ListOffsetsRequest request) {
  bool has_timeout = context.version >= 10 && request.timeout_ms > 0;
  MonotonicTime deadline = has_timeout ? deadline_of(context, request.timeout_ms) : context.deadline;
  SyncedImage synced{services.metadata.image(), true};
  // For partitions that are there the fetcher makes its own sync.
  auto find_topic = [&](const Topic& topic) { return synced.image->find_topic(topic.name); };
  if (!knows_all(request.topics, find_topic, &Topic::partitions, &Asked::partition_index))
    synced = co_await synced_image(services, deadline);

  auto duplicates = duplicates_of(request);
  std::set<std::pair<std::string, PartitionIndex>> told;
  ListOffsetsResponse response;
  std::map<std::string_view, size_t> topic_rows;
  std::vector<storage::OffsetQuery> queries;
  std::vector<Place> places;
  for (const auto& topic : request.topics) {
    if (topic.partitions.empty()) continue;
    const metadata::TopicView* view = synced.image->find_topic(topic.name);
    bool may_describe = is_allowed(services, context, Operation::kDescribe, ResourceType::kTopic, topic.name);
    // A topic has one row, and so has a partition, however often the request names it.
    auto [place, is_new] = topic_rows.try_emplace(topic.name, response.topics.size());
    if (is_new) response.topics.emplace_back().name = topic.name;
    auto& rows = response.topics[place->second];
    for (const Asked& asked : topic.partitions) {
      bool is_duplicate = duplicates.contains({topic.name, asked.partition_index});
      if (is_duplicate && !told.emplace(topic.name, asked.partition_index).second) continue;
      ResultRow& row = rows.partitions.emplace_back();
      row.partition_index = asked.partition_index;
      if (!may_describe) {
        row.error_code = ErrorCode::kTopicAuthorizationFailed;
        continue;
      }
      if (is_duplicate) {
        row.error_code = ErrorCode::kInvalidRequest;
        continue;
      }
      if (auto error = early_error(synced, view, asked, context.version)) {
        row.error_code = *error;
        continue;
      }
      // Nothing here waits to be uploaded to a second tier.
      if (asked.timestamp == kEarliestPendingUpload) continue;
      bool by_time_in_version_0 = context.version == 0 && asked.timestamp >= 0;
      storage::OffsetQuery query;
      query.partition = view->partitions[static_cast<size_t>(asked.partition_index.value())];
      query.timestamp = by_time_in_version_0 ? storage::kEarliestTimestamp : asked.timestamp;
      queries.push_back(query);
      places.push_back({place->second, rows.partitions.size() - 1, &asked});
    }
  }
  if (queries.empty()) co_return response;
  bool is_read_committed = request.isolation_level == kReadCommitted;
  auto found = co_await services.fetcher.list_offsets(std::move(queries), is_read_committed, deadline);
  std::shared_ptr<const metadata::MetadataImage> now = services.metadata.image();
  for (size_t i = 0; i < found.size(); ++i) {
    const Asked& asked = *places[i].asked;
    auto& rows = response.topics[places[i].topic];
    ResultRow& row = rows.partitions[places[i].partition];
    fill(row, asked, found[i], context.version, leader_epoch(*synced.image));
    row.error_code = unless_made_again(row.error_code, *now, rows.name, asked.partition_index);
  }
  co_return response;
}

}  // namespace varve::broker
