#include "broker/handlers/handler_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "protocol/frame.h"
#include "protocol/message_codec.h"
#include "protocol/message_printer.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;

// With its quotes escaped it still fits into one line of the log, which is cut at 4 KiB.
constexpr size_t kTraceBytesMax = 1536;

template <class Message>
void trace(const Services& services, const RequestContext& context, std::string_view what,
           const Message& message) {
  if (!services.settings.trace_kafka || !services.logger.enabled(LogLevel::kDebug)) return;
  services.logger.debug(what, {{"connection", context.connection},
                               {"version", context.version},
                               {"client", context.client_id},
                               {"message", protocol::to_string(message, kTraceBytesMax)}});
}

// Counts what the request took, and tells the client how long it has to wait for that.
template <class Response>
Duration charge(const Services& services, const RequestContext& context, const protocol::ApiInfo& api,
                Response* response) {
  if (services.quotas == nullptr) return {};
  MonotonicTime now = services.runtime.now();
  Duration throttle = services.quotas->charge({.principal = context.principal,
                                               .client_id = context.client_id,
                                               .api = api.key,
                                               .request_bytes = context.frame_bytes,
                                               .handling = now - context.received},
                                              now);
  if constexpr (requires { response->throttle_time_ms; }) {
    if (response != nullptr) {
      response->throttle_time_ms =
          static_cast<int32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(throttle).count());
    }
  }
  return throttle;
}

// For KafScale's count of admin requests that failed: whether any line of the answer has an error.
template <class Rows>
bool any_error(const Rows& rows) {
  return std::ranges::any_of(rows, [](const auto& row) { return row.error_code != ErrorCode::kNone; });
}
template <class Response>
bool has_error(const Response& response) {
  if constexpr (requires { response.responses.front().error_code; }) {
    if (any_error(response.responses)) return true;
  }
  if constexpr (requires { response.results.front().error_code; }) {
    if (any_error(response.results)) return true;
  }
  if constexpr (requires { response.groups.front().error_code; }) {
    if (any_error(response.groups)) return true;
  }
  if constexpr (requires { response.topics.front().error_code; }) {
    if (any_error(response.topics)) return true;
  }
  if constexpr (requires { response.topics.front().partitions.front().error_code; }) {
    if (std::ranges::any_of(response.topics, [](const auto& topic) { return any_error(topic.partitions); }))
      return true;
  }
  if constexpr (requires { response.error_code; }) return response.error_code != ErrorCode::kNone;
  return false;
}

// KafScale names some APIs in its metrics and numbers the others.
std::string kafscale_label(protocol::ApiKey key) {
  using protocol::ApiKey;
  bool is_named = key == ApiKey::kDescribeGroups || key == ApiKey::kListGroups ||
                  key == ApiKey::kOffsetForLeaderEpoch || key == ApiKey::kDescribeConfigs ||
                  key == ApiKey::kAlterConfigs;
  if (is_named) return std::string(protocol::api_info(key).name);
  return fmt::format("api_{}", static_cast<int16_t>(key));
}

template <class Request, auto Handle>
runtime::Task<Reply> serve(Services& services, RequestContext context, protocol::RequestFrame frame) {
  protocol::DecodeLimits limits;
  auto request = protocol::decode_message<Request>(frame.body, context.version, limits);
  if (!request) {
    // As Kafka, which cannot know what the client would make of an answer.
    co_return Reply::malformed(fmt::format("malformed {} request, version {}: {}", frame.api->name,
                                           context.version, request.error().message));
  }
  frame.body = {};
  trace(services, context, frame.api->name, *request);
  Answer<typename Request::Response> answer = co_await Handle(services, context, std::move(*request));
  if (answer.close_reason) co_return Reply::close(std::move(*answer.close_reason));
  Duration throttle = charge(services, context, *frame.api, answer.response ? &*answer.response : nullptr);
  if (!answer.response) {
    Reply none = Reply::none();
    none.throttle = throttle;
    co_return none;
  }
  trace(services, context, frame.api->name, *answer.response);
  Reply reply = Reply::response(
      protocol::response_frame(*answer.response, context.version, frame.header.correlation_id));
  reply.throttle = throttle;
  reply.has_error = has_error(*answer.response);
  co_return reply;
}

}  // namespace

struct HandlerTable::Row {
  protocol::ApiKey key;
  // nullopt: everybody may ask.
  std::optional<Access> access;
  runtime::Task<Reply> (*function)(Services&, RequestContext, protocol::RequestFrame);
  // Counted under KafScale's kafscale_admin_* names too.
  bool is_admin = false;

  static const Row kRows[];
};

const HandlerTable::Row HandlerTable::Row::kRows[] = {
    {protocol::ApiKey::kProduce, Access{Operation::kWrite, ResourceType::kTopic},
     &serve<protocol::ProduceRequest, handle_produce>},
    {protocol::ApiKey::kFetch, Access{Operation::kRead, ResourceType::kTopic},
     &serve<protocol::FetchRequest, handle_fetch>},
    {protocol::ApiKey::kListOffsets, Access{Operation::kDescribe, ResourceType::kTopic},
     &serve<protocol::ListOffsetsRequest, handle_list_offsets>},
    {protocol::ApiKey::kMetadata, Access{Operation::kDescribe, ResourceType::kTopic},
     &serve<protocol::MetadataRequest, handle_metadata>},
    {protocol::ApiKey::kFindCoordinator, Access{Operation::kDescribe, ResourceType::kGroup},
     &serve<protocol::FindCoordinatorRequest, handle_find_coordinator>},
    {protocol::ApiKey::kApiVersions, std::nullopt, &serve<protocol::ApiVersionsRequest, handle_api_versions>},
    {protocol::ApiKey::kCreateTopics, Access{Operation::kCreate, ResourceType::kCluster},
     &serve<protocol::CreateTopicsRequest, handle_create_topics>, true},
    {protocol::ApiKey::kDeleteTopics, Access{Operation::kDelete, ResourceType::kCluster},
     &serve<protocol::DeleteTopicsRequest, handle_delete_topics>, true},
    {protocol::ApiKey::kInitProducerId, Access{Operation::kIdempotentWrite, ResourceType::kCluster},
     &serve<protocol::InitProducerIdRequest, handle_init_producer_id>},
    {protocol::ApiKey::kDescribeCluster, Access{Operation::kDescribe, ResourceType::kCluster},
     &serve<protocol::DescribeClusterRequest, handle_describe_cluster>, true},
    {protocol::ApiKey::kDescribeConfigs, Access{Operation::kDescribeConfigs, ResourceType::kTopic},
     &serve<protocol::DescribeConfigsRequest, handle_describe_configs>, true},
    {protocol::ApiKey::kDescribeTopicPartitions, Access{Operation::kDescribe, ResourceType::kTopic},
     &serve<protocol::DescribeTopicPartitionsRequest, handle_describe_topic_partitions>},
    {protocol::ApiKey::kOffsetForLeaderEpoch, Access{Operation::kDescribe, ResourceType::kTopic},
     &serve<protocol::OffsetForLeaderEpochRequest, handle_offset_for_leader_epoch>, true},
    {protocol::ApiKey::kDeleteRecords, Access{Operation::kDelete, ResourceType::kTopic},
     &serve<protocol::DeleteRecordsRequest, handle_delete_records>, true},
    {protocol::ApiKey::kDescribeLogDirs, Access{Operation::kDescribe, ResourceType::kCluster},
     &serve<protocol::DescribeLogDirsRequest, handle_describe_log_dirs>, true},
    {protocol::ApiKey::kCreatePartitions, Access{Operation::kAlter, ResourceType::kTopic},
     &serve<protocol::CreatePartitionsRequest, handle_create_partitions>, true},
    {protocol::ApiKey::kAlterConfigs, Access{Operation::kAlterConfigs, ResourceType::kTopic},
     &serve<protocol::AlterConfigsRequest, handle_alter_configs>, true},
    {protocol::ApiKey::kIncrementalAlterConfigs, Access{Operation::kAlterConfigs, ResourceType::kTopic},
     &serve<protocol::IncrementalAlterConfigsRequest, handle_incremental_alter_configs>, true},
    {protocol::ApiKey::kJoinGroup, Access{Operation::kRead, ResourceType::kGroup},
     &serve<protocol::JoinGroupRequest, handle_join_group>},
    {protocol::ApiKey::kSyncGroup, Access{Operation::kRead, ResourceType::kGroup},
     &serve<protocol::SyncGroupRequest, handle_sync_group>},
    {protocol::ApiKey::kHeartbeat, Access{Operation::kRead, ResourceType::kGroup},
     &serve<protocol::HeartbeatRequest, handle_heartbeat>},
    {protocol::ApiKey::kLeaveGroup, Access{Operation::kRead, ResourceType::kGroup},
     &serve<protocol::LeaveGroupRequest, handle_leave_group>},
    {protocol::ApiKey::kOffsetCommit, Access{Operation::kRead, ResourceType::kGroup},
     &serve<protocol::OffsetCommitRequest, handle_offset_commit>},
    {protocol::ApiKey::kOffsetFetch, Access{Operation::kDescribe, ResourceType::kGroup},
     &serve<protocol::OffsetFetchRequest, handle_offset_fetch>},
    {protocol::ApiKey::kOffsetDelete, Access{Operation::kDelete, ResourceType::kGroup},
     &serve<protocol::OffsetDeleteRequest, handle_offset_delete>, true},
    {protocol::ApiKey::kDescribeGroups, Access{Operation::kDescribe, ResourceType::kGroup},
     &serve<protocol::DescribeGroupsRequest, handle_describe_groups>, true},
    {protocol::ApiKey::kListGroups, Access{Operation::kDescribe, ResourceType::kCluster},
     &serve<protocol::ListGroupsRequest, handle_list_groups>, true},
    {protocol::ApiKey::kDeleteGroups, Access{Operation::kDelete, ResourceType::kGroup},
     &serve<protocol::DeleteGroupsRequest, handle_delete_groups>, true},
};

struct HandlerTable::Meters {
  const Row* row;
  Counter* requests;
  Histogram* seconds;
  Counter* throttle_ms;
  Counter* admin_requests = nullptr;
  Counter* admin_errors = nullptr;
  std::atomic<uint64_t> admin_nanoseconds{0};
};

HandlerTable::HandlerTable(Services& services) : services_(services) {
  MetricRegistry& metrics = services.metrics;
  for (const Row& row : Row::kRows) {
    std::string api(protocol::api_info(row.key).name);
    Meters& meters = meters_[row.key];
    meters.row = &row;
    meters.requests = &metrics.counter("varve_requests_total", "Kafka requests served", {{"api", api}});
    meters.seconds = &metrics.histogram("varve_request_seconds", "Time from a request's arrival to its reply",
                                        kStageSecondsBuckets, {{"api", api}});
    meters.throttle_ms =
        &metrics.counter("varve_throttle_milliseconds_total",
                         "Time that clients were told to wait before their next request", {{"api", api}});
    if (!row.is_admin) continue;
    std::string kafscale_api = kafscale_label(row.key);
    meters.admin_requests =
        &metrics.counter("kafscale_admin_requests_total", "Admin requests", {{"api", kafscale_api}});
    meters.admin_errors = &metrics.counter("kafscale_admin_request_errors_total",
                                           "Admin requests with an error", {{"api", kafscale_api}});
    metrics.gauge_from(
        "kafscale_admin_request_latency_ms_avg", "Mean latency of admin requests since the start",
        [&meters] {
          uint64_t count = meters.admin_requests->value();
          return count == 0
                     ? 0.0
                     : static_cast<double>(meters.admin_nanoseconds) / 1e6 / static_cast<double>(count);
        },
        {{"api", kafscale_api}});
  }
  for (const protocol::ApiInfo& api : protocol::known_apis()) {
    CHECK(!api.served || meters_.contains(api.key), "{} is listed as served but has no handler", api.name);
  }
}

HandlerTable::~HandlerTable() = default;

std::optional<Access> HandlerTable::access_of(protocol::ApiKey key) {
  for (const Row& row : Row::kRows) {
    if (row.key == key) return row.access;
  }
  return std::nullopt;
}

runtime::Task<Reply> HandlerTable::handle(RequestContext context, protocol::RequestFrame request) {
  if (request.api_versions_unsupported) {
    co_return Reply::response(protocol::response_frame(protocol::unsupported_api_versions_response(), 0,
                                                       request.header.correlation_id));
  }
  Meters& meters = meters_.at(request.api->key);
  MonotonicTime received = context.received;
  Reply reply = co_await meters.row->function(services_, std::move(context), std::move(request));
  Duration taken = services_.runtime.now() - received;
  meters.requests->add();
  meters.seconds->observe(taken);
  if (reply.throttle > Duration()) {
    meters.throttle_ms->add(
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(reply.throttle).count()));
  }
  if (meters.admin_requests != nullptr) {
    meters.admin_requests->add();
    if (reply.has_error) meters.admin_errors->add();
    meters.admin_nanoseconds += static_cast<uint64_t>(taken.count());
  }
  co_return reply;
}

}  // namespace varve::broker
