#include <algorithm>
#include <set>

#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {
namespace {

using metadata::MetadataImage;
using protocol::DescribeTopicPartitionsRequest;
using protocol::DescribeTopicPartitionsResponse;
using protocol::ErrorCode;
using TopicRow = DescribeTopicPartitionsResponse::DescribeTopicPartitionsResponseTopic;
using Names = std::set<std::string, std::less<>>;

// Kafka: max.request.partition.size.limit.
constexpr int32_t kPartitionsMax = 2'000;

// Where the answer begins: a place in the sorted topics.
struct Start {
  std::string topic;
  int32_t partition = 0;
};

Start start_of(const DescribeTopicPartitionsRequest& request) {
  if (!request.cursor) return {};
  return {request.cursor->topic_name, request.cursor->partition_index.value()};
}

// The topics that are asked for, from the start on. No topic asked for: all.
Names names_of(const MetadataImage& image, const DescribeTopicPartitionsRequest& request,
               const Start& start) {
  Names names;
  if (request.topics.empty()) {
    for (auto topic = image.topics_by_name.lower_bound(start.topic); topic != image.topics_by_name.end();
         ++topic)
      names.insert(names.end(), topic->first);
  }
  for (const auto& topic : request.topics) {
    if (topic.name >= start.topic) names.insert(topic.name);
  }
  return names;
}

DescribeTopicPartitionsResponse refusal(const DescribeTopicPartitionsRequest& request) {
  DescribeTopicPartitionsResponse response;
  for (const auto& asked : request.topics) {
    TopicRow& row = response.topics.emplace_back();
    row.name = asked.name;
    row.error_code = ErrorCode::kInvalidRequest;
  }
  return response;
}

TopicRow absent_row(const std::string& name, bool is_certain) {
  TopicRow row;
  row.name = name;
  row.is_internal = is_internal_topic(name);
  row.error_code = topic_name_problem(name) ? ErrorCode::kInvalidTopicException
                   : is_certain             ? ErrorCode::kUnknownTopicOrPartition
                                            : kCannotTellTopic;
  return row;
}

// Says nothing of whether the topic is there.
TopicRow denied_row(const std::string& name) {
  TopicRow row;
  row.name = name;
  row.error_code = ErrorCode::kTopicAuthorizationFailed;
  return row;
}

TopicRow topic_row(const MetadataImage& image, const metadata::TopicView& topic, std::string_view rack,
                   size_t first, size_t end) {
  TopicRow row;
  row.name = topic.name;
  row.topic_id = topic.id;
  row.is_internal = is_internal_topic(topic.name);
  for (size_t i = first; i < end; ++i) {
    auto& partition = row.partitions.emplace_back();
    partition.partition_index = PartitionIndex(static_cast<int32_t>(i));
    fill_leader(image, topic.partitions[i], rack, partition);
    // No replica could lead without being in sync: Kafka says so with empty lists.
    partition.eligible_leader_replicas.emplace();
    partition.last_known_elr.emplace();
  }
  return row;
}

}  // namespace

HandlerTask<DescribeTopicPartitionsResponse> handle_describe_topic_partitions(
    Services& services, const RequestContext& context, DescribeTopicPartitionsRequest request) {
  Start start = start_of(request);
  bool has_start =
      request.topics.empty() || !request.cursor ||
      std::ranges::any_of(request.topics, [&](const auto& topic) { return topic.name == start.topic; });
  if (!has_start || start.partition < 0) co_return refusal(request);

  SyncedImage synced = co_await synced_image(services, context.deadline);
  const MetadataImage& image = *synced.image;
  std::string rack = rack_of(context, image);
  auto operations_on = [&](const std::string& topic) {
    return authorized_operations(services, context, ResourceType::kTopic, topic);
  };
  std::vector<TopicRow> denied;
  DescribeTopicPartitionsResponse response;
  auto left = static_cast<size_t>(std::clamp(request.response_partition_limit, 1, kPartitionsMax));
  for (const std::string& name : names_of(image, request, start)) {
    if (!is_allowed(services, context, Operation::kDescribe, ResourceType::kTopic, name)) {
      // A list of everything leaves out what the client may not see.
      if (!request.topics.empty()) denied.push_back(denied_row(name));
      continue;
    }
    auto stop_at = [&](size_t partition) {
      auto& cursor = response.next_cursor.emplace();
      cursor.topic_name = name;
      cursor.partition_index = PartitionIndex(static_cast<int32_t>(partition));
    };
    if (left == 0) {
      stop_at(0);
      break;
    }
    const metadata::TopicView* topic = image.find_topic(name);
    if (topic == nullptr) {
      response.topics.push_back(absent_row(name, synced.is_certain));
      response.topics.back().topic_authorized_operations = operations_on(name);
      continue;
    }
    size_t count = topic->partitions.size();
    size_t first = name == start.topic ? std::min(count, static_cast<size_t>(start.partition)) : 0;
    size_t end = std::min(count, first + left);
    response.topics.push_back(topic_row(image, *topic, rack, first, end));
    response.topics.back().topic_authorized_operations = operations_on(name);
    left -= end - first;
    if (end < count) {
      stop_at(end);
      break;
    }
  }
  std::ranges::move(denied, std::back_inserter(response.topics));
  co_return response;
}

}  // namespace varve::broker
