#include <map>
#include <string_view>

#include "broker/group/group_coordinator.h"
#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using protocol::OffsetDeleteRequest;
using protocol::OffsetDeleteResponse;

// The rows of the response, by topic in the order in which each came first.
class Rows {
 public:
  explicit Rows(OffsetDeleteResponse& response) : response_(response) {}

  void add(const std::string& topic, PartitionIndex partition, ErrorCode code) {
    auto [place, is_new] = places_.try_emplace(topic, response_.topics.size());
    if (is_new) response_.topics.emplace_back().name = topic;
    auto& added = response_.topics[place->second].partitions.emplace_back();
    added.partition_index = partition;
    added.error_code = code;
  }

 private:
  OffsetDeleteResponse& response_;
  std::map<std::string_view, size_t> places_;  // names of the request
};

}  // namespace

// Rows that were refused before the group was asked stand first, as in Kafka.
HandlerTask<OffsetDeleteResponse> handle_offset_delete(Services& services, const RequestContext& context,
                                                       OffsetDeleteRequest request) {
  OffsetDeleteResponse response;
  if (!is_allowed(services, context, Operation::kDelete, ResourceType::kGroup, request.group_id)) {
    response.error_code = ErrorCode::kGroupAuthorizationFailed;
    co_return response;
  }
  SyncedImage synced = co_await synced_image(services, context.deadline);
  if (!synced.is_certain) {
    response.error_code = kCannotTellGroup;
    co_return response;
  }
  Rows rows(response);
  OffsetDeletion deletion{.group = std::move(request.group_id), .topics = {}};
  std::vector<std::pair<const std::string*, PartitionIndex>> asked;
  for (const auto& topic : request.topics) {
    const metadata::TopicView* view = synced.image->find_topic(topic.name);
    bool may_read = is_allowed(services, context, Operation::kRead, ResourceType::kTopic, topic.name);
    for (const auto& partition : topic.partitions) {
      std::optional<PartitionHandle> handle = find_partition(view, partition.partition_index);
      if (!may_read) {
        rows.add(topic.name, partition.partition_index, ErrorCode::kTopicAuthorizationFailed);
      } else if (!handle) {
        rows.add(topic.name, partition.partition_index, ErrorCode::kUnknownTopicOrPartition);
      } else {
        deletion.topics[topic.name].push_back(*handle);
        asked.emplace_back(&topic.name, partition.partition_index);
      }
    }
  }
  DeleteOffsetsAnswer answer = co_await services.groups.delete_offsets(std::move(deletion), context.deadline);
  if (answer.error != GroupErrc::kNone) {
    response.topics.clear();
    response.error_code = error_of(answer.error);
    co_return response;
  }
  for (const auto& [topic, partition] : asked) {
    bool is_read = answer.subscribed.contains(*topic);
    rows.add(*topic, partition, is_read ? ErrorCode::kGroupSubscribedToTopic : ErrorCode::kNone);
  }
  co_return response;
}

}  // namespace varve::broker
