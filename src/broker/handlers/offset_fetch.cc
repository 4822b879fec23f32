#include <map>
#include <string_view>

#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/mentions.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::OffsetFetchRequest;
using protocol::OffsetFetchResponse;
using AskedGroup = OffsetFetchRequest::OffsetFetchRequestGroup;
using AskedTopic = OffsetFetchRequest::OffsetFetchRequestTopics;
using GroupRow = OffsetFetchResponse::OffsetFetchResponseGroup;
using TopicRow = OffsetFetchResponse::OffsetFetchResponseTopics;
using PartitionRow = OffsetFetchResponse::OffsetFetchResponsePartitions;

constexpr int16_t kFirstVersionOfMany = 8;
constexpr int16_t kFirstVersionWithIds = 10;
constexpr int16_t kFirstVersionWithGroupError = 2;

PartitionRow absent_row(PartitionIndex partition, ErrorCode code) {
  PartitionRow row;
  row.partition_index = partition;
  row.committed_offset = Offset(-1);
  row.error_code = code;
  return row;
}

TopicRow topic_row(const AskedTopic& topic, ErrorCode code) {
  TopicRow row;
  row.name = topic.name;
  row.topic_id = topic.topic_id;
  for (PartitionIndex partition : topic.partition_indexes)
    row.partitions.push_back(absent_row(partition, code));
  return row;
}

PartitionRow committed_row(const FetchedOffset& fetched) {
  PartitionRow row;
  row.partition_index = fetched.partition;
  row.committed_offset = Offset(fetched.committed.offset);
  row.committed_leader_epoch = fetched.committed.leader_epoch;
  row.metadata = fetched.committed.metadata;
  return row;
}

std::vector<AskedGroup> groups_of(OffsetFetchRequest& request, int16_t version) {
  if (version >= kFirstVersionOfMany) return std::move(request.groups);
  AskedGroup group;
  group.group_id = std::move(request.group_id);
  group.topics.reset();
  if (request.topics) {
    group.topics.emplace();
    for (auto& topic : *request.topics) {
      AskedTopic& asked = group.topics->emplace_back();
      asked.name = std::move(topic.name);
      asked.partition_indexes = std::move(topic.partition_indexes);
    }
  }
  std::vector<AskedGroup> groups;
  groups.push_back(std::move(group));
  return groups;
}

// One group's way from the request to its row.
class GroupFetch {
 public:
  GroupFetch(const Services& services, const RequestContext& context, const metadata::MetadataImage& image,
             const AskedGroup& asked)
      : services_(services), context_(context), image_(image), asked_(asked) {}

  // Which offsets have to be known; nullopt: the client may not know any.
  std::optional<OffsetQuery> query() {
    if (!is_allowed(services_, context_, Operation::kDescribe, ResourceType::kGroup, asked_.group_id)) {
      return std::nullopt;
    }
    OffsetQuery query{.group = asked_.group_id, .partitions = std::nullopt};
    if (!asked_.topics) return query;
    query.partitions.emplace();
    for (const AskedTopic& topic : *asked_.topics) {
      const metadata::TopicView* view = find(topic);
      if (topic_error(topic, view) != ErrorCode::kNone) continue;
      for (PartitionIndex index : topic.partition_indexes) {
        if (auto handle = find_partition(view, index)) query.partitions->push_back(*handle);
      }
    }
    return query;
  }

  GroupRow failed(ErrorCode code) const {
    GroupRow row;
    row.group_id = asked_.group_id;
    row.error_code = code;
    // The oldest version has no other place for it.
    if (context_.version < kFirstVersionWithGroupError && asked_.topics) {
      for (const AskedTopic& topic : *asked_.topics) row.topics.push_back(topic_row(topic, code));
    }
    return row;
  }

  GroupRow row(const FetchedOffsets& fetched) const {
    GroupRow row;
    row.group_id = asked_.group_id;
    if (asked_.topics) {
      add_asked(row, fetched);
    } else {
      add_all(row, fetched);
    }
    return row;
  }

 private:
  const metadata::TopicView* find(const AskedTopic& topic) const {
    return by_id() ? image_.find_topic(topic.topic_id) : image_.find_topic(topic.name);
  }
  bool by_id() const { return context_.version >= kFirstVersionWithIds; }
  bool may_describe(const std::string& topic) const {
    return is_allowed(services_, context_, Operation::kDescribe, ResourceType::kTopic, topic);
  }
  ErrorCode topic_error(const AskedTopic& topic, const metadata::TopicView* view) const {
    if (by_id() && view == nullptr) return ErrorCode::kUnknownTopicId;
    bool is_hidden = !may_describe(by_id() ? view->name : topic.name);
    return is_hidden ? ErrorCode::kTopicAuthorizationFailed : ErrorCode::kNone;
  }

  // A partition without an offset, or that there is not, has -1; topics with an error stand last.
  void add_asked(GroupRow& row, const FetchedOffsets& fetched) const {
    std::map<std::pair<Uuid, PartitionIndex>, const FetchedOffset*> offsets;
    for (const FetchedOffset& one : fetched.offsets) offsets[{one.topic, one.partition}] = &one;
    Mentions<std::pair<Uuid, PartitionIndex>> mentions;
    std::vector<TopicRow> failed;
    for (const AskedTopic& topic : *asked_.topics) {
      const metadata::TopicView* view = find(topic);
      ErrorCode error = topic_error(topic, view);
      if (error != ErrorCode::kNone) {
        failed.push_back(topic_row(topic, error));
        continue;
      }
      TopicRow& added = row.topics.emplace_back(topic_row(topic, ErrorCode::kNone));
      for (PartitionRow& partition : added.partitions) {
        if (view == nullptr) continue;
        if (mentions.is_too_often({view->id, partition.partition_index})) {
          partition.error_code = ErrorCode::kInvalidRequest;
          continue;
        }
        auto found = offsets.find({view->id, partition.partition_index});
        if (found != offsets.end()) partition = committed_row(*found->second);
      }
    }
    row.topics.insert(row.topics.end(), failed.begin(), failed.end());
  }

  void add_all(GroupRow& row, const FetchedOffsets& fetched) const {
    std::map<Uuid, size_t> places;
    for (const FetchedOffset& one : fetched.offsets) {
      const metadata::TopicView* view = image_.find_topic(one.topic);
      if (view == nullptr || !may_describe(view->name)) continue;
      auto [place, is_new] = places.try_emplace(one.topic, row.topics.size());
      if (is_new) {
        TopicRow& added = row.topics.emplace_back();
        added.name = view->name;
        added.topic_id = view->id;
      }
      row.topics[place->second].partitions.push_back(committed_row(one));
    }
  }

  const Services& services_;
  const RequestContext& context_;
  const metadata::MetadataImage& image_;
  const AskedGroup& asked_;
};

OffsetFetchResponse response_of(std::vector<GroupRow> rows, int16_t version) {
  OffsetFetchResponse response;
  if (version >= kFirstVersionOfMany) {
    response.groups = std::move(rows);
    return response;
  }
  GroupRow& only = rows.front();
  response.error_code = only.error_code;
  for (TopicRow& topic : only.topics) {
    auto& row = response.topics.emplace_back();
    row.name = std::move(topic.name);
    for (PartitionRow& partition : topic.partitions) {
      auto& added = row.partitions.emplace_back();
      added.partition_index = partition.partition_index;
      added.committed_offset = partition.committed_offset;
      added.committed_leader_epoch = partition.committed_leader_epoch;
      added.metadata = std::move(partition.metadata);
      added.error_code = partition.error_code;
    }
  }
  return response;
}

}  // namespace

// No offset is unstable (require_stable) while there are no transactions.
HandlerTask<OffsetFetchResponse> handle_offset_fetch(Services& services, const RequestContext& context,
                                                     OffsetFetchRequest request) {
  const std::vector<AskedGroup> groups = groups_of(request, context.version);
  SyncedImage synced = co_await synced_image(services, context.deadline);
  std::vector<GroupFetch> fetches;
  std::vector<OffsetQuery> queries;
  std::vector<std::optional<size_t>> places;  // in queries
  Mentions<std::string_view> mentions;
  std::vector<bool> are_too_often;
  for (const AskedGroup& group : groups) {
    GroupFetch& fetch = fetches.emplace_back(services, context, *synced.image, group);
    are_too_often.push_back(mentions.is_too_often(group.group_id));
    std::optional<OffsetQuery> query;
    if (!are_too_often.back()) query = fetch.query();
    places.push_back(query ? std::optional(queries.size()) : std::nullopt);
    if (query) queries.push_back(std::move(*query));
  }
  std::vector<FetchedOffsets> fetched;
  if (synced.is_certain) fetched = co_await services.groups.offsets(std::move(queries));
  std::vector<GroupRow> rows;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (are_too_often[i]) {
      rows.push_back(fetches[i].failed(ErrorCode::kInvalidRequest));
    } else if (!places[i]) {
      rows.push_back(fetches[i].failed(ErrorCode::kGroupAuthorizationFailed));
    } else if (!synced.is_certain) {
      rows.push_back(fetches[i].failed(ErrorCode::kNotCoordinator));
    } else if (fetched[*places[i]].error != GroupErrc::kNone) {
      rows.push_back(fetches[i].failed(error_of(fetched[*places[i]].error)));
    } else {
      rows.push_back(fetches[i].row(fetched[*places[i]]));
    }
  }
  co_return response_of(std::move(rows), context.version);
}

}  // namespace varve::broker
