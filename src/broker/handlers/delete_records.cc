#include <algorithm>
#include <map>

#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/proposing.h"
#include "broker/handlers/topic_lookup.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {
namespace {

using metadata::PartitionView;
using protocol::DeleteRecordsRequest;
using protocol::DeleteRecordsResponse;
using protocol::ErrorCode;
using ResultRow = DeleteRecordsResponse::DeleteRecordsPartitionResult;

constexpr int64_t kToTheEnd = -1;
constexpr Offset kNoWatermark{-1};

// A partition that is asked for.
struct Target {
  ResultRow* row;
  PartitionHandle partition;
  Offset offset;
};

ResultRow refused(PartitionIndex partition, ErrorCode code) {
  ResultRow row;
  row.partition_index = partition;
  row.low_watermark = kNoWatermark;
  row.error_code = code;
  return row;
}

// Why the client may not delete anything of the topic, if so.
ErrorCode denial_of(const Services& services, const RequestContext& context, const std::string& topic) {
  if (!services.settings.allow_admin_apis) return ErrorCode::kClusterAuthorizationFailed;
  return is_allowed(services, context, Operation::kDelete, ResourceType::kTopic, topic)
             ? ErrorCode::kNone
             : ErrorCode::kTopicAuthorizationFailed;
}

// Why nothing of the partition may be deleted, before its offsets are looked at.
ErrorCode early_error(const SyncedImage& synced, const metadata::TopicView* topic, PartitionIndex partition) {
  if (!find_partition(topic, partition))
    return synced.is_certain ? ErrorCode::kUnknownTopicOrPartition : kCannotTellPartition;
  if (is_internal_topic(topic->name)) return ErrorCode::kInvalidTopicException;
  // What compaction alone may take away, no client may.
  return is_compacted_only(*topic) ? ErrorCode::kPolicyViolation : ErrorCode::kNone;
}

// The answer, and what is to be asked of the log for it.
struct Plan {
  DeleteRecordsResponse response;
  std::vector<Target> targets;
};

// A partition that is asked for twice is answered once, for the last offset, as in Kafka.
std::map<std::string, std::map<PartitionIndex, Offset>> asked_offsets(const DeleteRecordsRequest& request) {
  std::map<std::string, std::map<PartitionIndex, Offset>> asked;
  for (const auto& topic : request.topics) {
    for (const auto& partition : topic.partitions)
      asked[topic.name][partition.partition_index] = partition.offset;
  }
  return asked;
}

Plan plan_of(const Services& services, const RequestContext& context, const SyncedImage& synced,
             const DeleteRecordsRequest& request) {
  Plan plan;
  auto asked = asked_offsets(request);
  plan.response.topics.reserve(asked.size());
  for (const auto& [name, partitions] : asked) {
    const metadata::TopicView* topic = synced.image->find_topic(name);
    ErrorCode denial = denial_of(services, context, name);
    auto& rows = plan.response.topics.emplace_back();
    rows.name = name;
    rows.partitions.reserve(partitions.size());
    for (const auto& [index, offset] : partitions) {
      ErrorCode error = denial != ErrorCode::kNone ? denial : early_error(synced, topic, index);
      rows.partitions.push_back(refused(index, error));
      if (error == ErrorCode::kNone)
        plan.targets.push_back({&rows.partitions.back(), *find_partition(topic, index), offset});
    }
  }
  return plan;
}

using Views = std::vector<std::optional<PartitionView>>;
runtime::Task<Views> views_of(Services& services, std::vector<PartitionHandle> partitions) {
  co_return co_await runtime::call(services.runtime.core(),
                                   [&metadata = services.metadata, partitions = std::move(partitions)] {
                                     Views views;
                                     for (PartitionHandle partition : partitions)
                                       views.push_back(metadata.state().partition(partition));
                                     return views;
                                   });
}

std::vector<PartitionHandle> handles_of(const std::vector<Target>& targets) {
  std::vector<PartitionHandle> handles;
  for (const Target& target : targets) handles.push_back(target.partition);
  return handles;
}

// Answers from the partitions as they are, where that can be done; the others are to be changed.
std::vector<Target> settle(std::vector<Target> targets, const Views& views) {
  std::vector<Target> open;
  for (size_t i = 0; i < targets.size(); ++i) {
    Target& target = targets[i];
    ResultRow& row = *target.row;
    if (!views[i]) {
      row.error_code = ErrorCode::kUnknownTopicOrPartition;
      continue;
    }
    if (target.offset.value() == kToTheEnd) target.offset = views[i]->high_watermark;
    if (target.offset.value() < 0 || target.offset > views[i]->high_watermark) {
      row.error_code = ErrorCode::kOffsetOutOfRange;
    } else if (target.offset <= views[i]->log_start) {
      row.low_watermark = views[i]->log_start;
    } else {
      open.push_back(target);
    }
  }
  return open;
}

}  // namespace

HandlerTask<DeleteRecordsResponse> handle_delete_records(Services& services, const RequestContext& context,
                                                         DeleteRecordsRequest request) {
  // Kafka's partitions with one replica are changed at once, however short the timeout.
  MonotonicTime deadline =
      request.timeout_ms > 0 ? deadline_of(context, request.timeout_ms) : context.deadline;
  // The end of a partition is only known after a sync.
  SyncedImage synced = co_await synced_image(services, deadline);
  Plan plan = plan_of(services, context, synced, request);
  if (!synced.is_certain) {
    for (Target& target : plan.targets) target.row->error_code = kCannotTellPartition;
    co_return std::move(plan.response);
  }
  std::vector<Target> open = settle(plan.targets, co_await views_of(services, handles_of(plan.targets)));
  if (open.empty()) co_return std::move(plan.response);

  std::vector<metadata::Command> commands;
  for (const Target& target : open)
    commands.emplace_back(metadata::SetLogStart{target.partition, target.offset});
  auto outcomes = co_await propose_all(services.runtime, services.metadata, std::move(commands), deadline);
  std::vector<Target> passed;
  for (size_t i = 0; i < open.size(); ++i) {
    ResultRow& row = *open[i].row;
    if (!outcomes[i]) {
      row.error_code = error_of(outcomes[i].error().code);
    } else if (outcomes[i]->verdict == metadata::CommandVerdict::kDone) {
      row.low_watermark = open[i].offset;
    } else {
      // The topic is gone, or somebody else has deleted more meanwhile.
      passed.push_back(open[i]);
    }
  }
  if (passed.empty()) co_return std::move(plan.response);
  for (const Target& target : settle(passed, co_await views_of(services, handles_of(passed)))) {
    target.row->error_code = ErrorCode::kUnknownServerError;
  }
  co_return std::move(plan.response);
}

}  // namespace varve::broker
