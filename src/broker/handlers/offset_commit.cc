#include <algorithm>
#include <map>

#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::OffsetCommitRequest;
using protocol::OffsetCommitResponse;
using Topic = OffsetCommitRequest::OffsetCommitRequestTopic;
using Partition = OffsetCommitRequest::OffsetCommitRequestPartition;

constexpr int16_t kFirstVersionWithIds = 10;
constexpr int16_t kFirstVersionWithNotFound = 9;

// UTF-16 units, in which Kafka counts offset.metadata.max.bytes.
size_t kafka_length(std::string_view text) {
  size_t length = 0;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool is_continuation = (byte & 0xC0) == 0x80;
    bool is_pair = byte >= 0xF0;
    length += (is_continuation ? 0 : 1) + (is_pair ? 1 : 0);
  }
  return length;
}

// Rows in the order of Kafka's: those that were refused before the group was asked stand first.
class Rows {
 public:
  // `topic`: its place in the request.
  void add(const OffsetCommitRequest& request, size_t topic, PartitionIndex partition, ErrorCode code) {
    auto [place, is_new] = places_.try_emplace(topic, response.topics.size());
    if (is_new) {
      auto& row = response.topics.emplace_back();
      row.name = request.topics[topic].name;
      row.topic_id = request.topics[topic].topic_id;
    }
    auto& row = response.topics[place->second].partitions.emplace_back();
    row.partition_index = partition;
    row.error_code = code;
  }

  OffsetCommitResponse response;

 private:
  std::map<size_t, size_t> places_;
};

struct Place {
  size_t topic = 0;
  const Partition* partition = nullptr;
  PartitionHandle handle;
};

const metadata::TopicView* find(const metadata::MetadataImage& image, const Topic& topic, bool by_id) {
  return by_id ? image.find_topic(topic.topic_id) : image.find_topic(topic.name);
}

// Why nothing of the topic can be committed; kNone: its partitions are looked at.
ErrorCode topic_error(const Services& services, const RequestContext& context, const Topic& topic,
                      const metadata::TopicView* view, bool is_certain) {
  bool by_id = context.version >= kFirstVersionWithIds;
  if (by_id && view == nullptr) return is_certain ? ErrorCode::kUnknownTopicId : kCannotTellGroup;
  const std::string& name = by_id ? view->name : topic.name;
  if (!is_allowed(services, context, Operation::kRead, ResourceType::kTopic, name)) {
    return ErrorCode::kTopicAuthorizationFailed;
  }
  if (view == nullptr) return is_certain ? ErrorCode::kUnknownTopicOrPartition : kCannotTellGroup;
  return ErrorCode::kNone;
}

// The partitions that exist and may be committed; the others get their rows.
std::vector<Place> places_of(const Services& services, const RequestContext& context,
                             const OffsetCommitRequest& request, const SyncedImage& synced, Rows& rows) {
  std::vector<Place> places;
  for (size_t i = 0; i < request.topics.size(); ++i) {
    const Topic& topic = request.topics[i];
    const metadata::TopicView* view = find(*synced.image, topic, context.version >= kFirstVersionWithIds);
    ErrorCode error = topic_error(services, context, topic, view, synced.is_certain);
    for (const Partition& partition : topic.partitions) {
      std::optional<PartitionHandle> handle = find_partition(view, partition.partition_index);
      ErrorCode own = error;
      if (own == ErrorCode::kNone && !handle) {
        own = synced.is_certain ? ErrorCode::kUnknownTopicOrPartition : kCannotTellGroup;
      }
      if (own == ErrorCode::kNone) {
        places.push_back({i, &partition, *handle});
      } else {
        rows.add(request, i, partition.partition_index, own);
      }
    }
  }
  return places;
}

runtime::Task<SyncedImage> image_for(Services& services, const RequestContext& context,
                                     const OffsetCommitRequest& request) {
  SyncedImage synced{services.metadata.image(), true};
  bool by_id = context.version >= kFirstVersionWithIds;
  bool is_known = knows_all(
      request.topics, [&](const Topic& topic) { return find(*synced.image, topic, by_id); },
      &Topic::partitions, &Partition::partition_index);
  if (!is_known) synced = co_await synced_image(services, context.deadline);
  co_return synced;
}

CommitRequest commit_of(OffsetCommitRequest& request) {
  CommitRequest commit;
  commit.group = std::move(request.group_id);
  commit.member = {std::move(request.member_id), std::move(request.group_instance_id)};
  commit.generation = request.generation_id_or_member_epoch;
  commit.retention_ms = request.retention_time_ms;
  return commit;
}

}  // namespace

HandlerTask<OffsetCommitResponse> handle_offset_commit(Services& services, const RequestContext& context,
                                                       OffsetCommitRequest request) {
  Rows rows;
  if (!is_allowed(services, context, Operation::kRead, ResourceType::kGroup, request.group_id)) {
    for (size_t i = 0; i < request.topics.size(); ++i) {
      for (const Partition& partition : request.topics[i].partitions) {
        rows.add(request, i, partition.partition_index, ErrorCode::kGroupAuthorizationFailed);
      }
    }
    co_return std::move(rows.response);
  }
  SyncedImage synced = co_await image_for(services, context, request);
  std::vector<Place> places = places_of(services, context, request, synced, rows);
  if (places.empty()) co_return std::move(rows.response);

  CommitRequest commit = commit_of(request);
  std::vector<ErrorCode> codes(places.size(), ErrorCode::kNone);
  std::vector<size_t> committed;  // places
  for (size_t i = 0; i < places.size(); ++i) {
    const Partition& partition = *places[i].partition;
    std::string metadata = partition.committed_metadata.value_or("");
    if (kafka_length(metadata) > services.settings.offset_metadata_max) {
      codes[i] = ErrorCode::kOffsetMetadataTooLarge;
      continue;
    }
    committed.push_back(i);
    commit.offsets.push_back({places[i].handle, partition.committed_offset.value(),
                              partition.committed_leader_epoch, std::move(metadata)});
  }
  CommitAnswer answer = co_await services.groups.commit(std::move(commit), context.deadline);
  if (answer.error == GroupErrc::kGroupIdNotFound && context.version < kFirstVersionWithNotFound) {
    answer.error = GroupErrc::kIllegalGeneration;
  }
  if (answer.error != GroupErrc::kNone) std::ranges::fill(codes, error_of(answer.error));
  // Deleted since the image was made.
  for (uint32_t index : answer.unknown) codes[committed[index]] = ErrorCode::kUnknownTopicOrPartition;
  for (size_t i = 0; i < places.size(); ++i) {
    rows.add(request, places[i].topic, places[i].partition->partition_index, codes[i]);
  }
  co_return std::move(rows.response);
}

}  // namespace varve::broker
