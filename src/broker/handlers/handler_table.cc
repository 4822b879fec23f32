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
  constexpr bool kOfAll = requires { response.error_code; };
  constexpr bool kOfResponses = requires { response.responses.front().error_code; };
  constexpr bool kOfResults = requires { response.results.front().error_code; };
  constexpr bool kOfGroups = requires { response.groups.front().error_code; };
  constexpr bool kOfTopics = requires { response.topics.front().error_code; };
  constexpr bool kOfPartitions = requires { response.topics.front().partitions.front().error_code; };
  static_assert(kOfAll || kOfResponses || kOfResults || kOfGroups || kOfTopics || kOfPartitions,
                "where does this answer have its errors?");
  bool found = false;
  if constexpr (kOfAll) found |= response.error_code != ErrorCode::kNone;
  if constexpr (kOfResponses) found |= any_error(response.responses);
  if constexpr (kOfResults) found |= any_error(response.results);
  if constexpr (kOfGroups) found |= any_error(response.groups);
  if constexpr (kOfTopics) found |= any_error(response.topics);
  if constexpr (kOfPartitions) {
    found |=
        std::ranges::any_of(response.topics, [](const auto& topic) { return any_error(topic.partitions); });
  }
  return found;
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

template <class Request, auto Handle, bool kIsAdmin>
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
  if constexpr (kIsAdmin) reply.has_error = has_error(*answer.response);
  co_return reply;
}

}  // namespace

struct HandlerTable::Row {
  protocol::ApiKey key;
  // What the handler asks the authorizer first, as deny_all_test.cc holds it to; nullopt: nothing, everybody may ask. The
  // table itself asks nobody.
  std::optional<Access> access;
  runtime::Task<Reply> (*function)(Services&, RequestContext, protocol::RequestFrame);
  // Counted under KafScale's kafscale_admin_* names too.
  bool is_admin = false;

  template <class Request, auto Handle>
  static constexpr Row make(std::optional<Access> access) {
    return {Request::kApiKey, access, &serve<Request, Handle, false>};
  }
  template <class Request, auto Handle>
  static constexpr Row make_admin(std::optional<Access> access) {
    return {Request::kApiKey, access, &serve<Request, Handle, true>, true};
  }
  static const Row kRows[];
};

const HandlerTable::Row HandlerTable::Row::kRows[] = {
    make<protocol::ProduceRequest, handle_produce>(Access{Operation::kWrite, ResourceType::kTopic}),
    make<protocol::FetchRequest, handle_fetch>(Access{Operation::kRead, ResourceType::kTopic}),
    make<protocol::ListOffsetsRequest, handle_list_offsets>(
        Access{Operation::kDescribe, ResourceType::kTopic}),
    make<protocol::MetadataRequest, handle_metadata>(Access{Operation::kDescribe, ResourceType::kTopic}),
    make<protocol::FindCoordinatorRequest, handle_find_coordinator>(
        Access{Operation::kDescribe, ResourceType::kGroup}),
    make<protocol::ApiVersionsRequest, handle_api_versions>(std::nullopt),
    make_admin<protocol::CreateTopicsRequest, handle_create_topics>(
        Access{Operation::kCreate, ResourceType::kCluster}),
    make_admin<protocol::DeleteTopicsRequest, handle_delete_topics>(
        Access{Operation::kDelete, ResourceType::kCluster}),
    make<protocol::InitProducerIdRequest, handle_init_producer_id>(
        Access{Operation::kIdempotentWrite, ResourceType::kCluster}),
    make_admin<protocol::DescribeClusterRequest, handle_describe_cluster>(
        Access{Operation::kDescribe, ResourceType::kCluster}),
    make_admin<protocol::DescribeConfigsRequest, handle_describe_configs>(
        Access{Operation::kDescribeConfigs, ResourceType::kTopic}),
    make<protocol::DescribeTopicPartitionsRequest, handle_describe_topic_partitions>(
        Access{Operation::kDescribe, ResourceType::kTopic}),
    make_admin<protocol::OffsetForLeaderEpochRequest, handle_offset_for_leader_epoch>(
        Access{Operation::kClusterAction, ResourceType::kCluster}),
    make_admin<protocol::DeleteRecordsRequest, handle_delete_records>(
        Access{Operation::kDelete, ResourceType::kTopic}),
    make_admin<protocol::DescribeLogDirsRequest, handle_describe_log_dirs>(
        Access{Operation::kDescribe, ResourceType::kCluster}),
    make_admin<protocol::CreatePartitionsRequest, handle_create_partitions>(
        Access{Operation::kAlter, ResourceType::kTopic}),
    make_admin<protocol::AlterConfigsRequest, handle_alter_configs>(
        Access{Operation::kAlterConfigs, ResourceType::kTopic}),
    make_admin<protocol::IncrementalAlterConfigsRequest, handle_incremental_alter_configs>(
        Access{Operation::kAlterConfigs, ResourceType::kTopic}),
    make<protocol::JoinGroupRequest, handle_join_group>(Access{Operation::kRead, ResourceType::kGroup}),
    make<protocol::SyncGroupRequest, handle_sync_group>(Access{Operation::kRead, ResourceType::kGroup}),
    make<protocol::HeartbeatRequest, handle_heartbeat>(Access{Operation::kRead, ResourceType::kGroup}),
    make<protocol::LeaveGroupRequest, handle_leave_group>(Access{Operation::kRead, ResourceType::kGroup}),
    make<protocol::OffsetCommitRequest, handle_offset_commit>(Access{Operation::kRead, ResourceType::kGroup}),
    make<protocol::OffsetFetchRequest, handle_offset_fetch>(
        Access{Operation::kDescribe, ResourceType::kGroup}),
    make_admin<protocol::OffsetDeleteRequest, handle_offset_delete>(
        Access{Operation::kDelete, ResourceType::kGroup}),
    make_admin<protocol::DescribeGroupsRequest, handle_describe_groups>(
        Access{Operation::kDescribe, ResourceType::kGroup}),
    make_admin<protocol::ListGroupsRequest, handle_list_groups>(
        Access{Operation::kDescribe, ResourceType::kCluster}),
    make_admin<protocol::DeleteGroupsRequest, handle_delete_groups>(
        Access{Operation::kDelete, ResourceType::kGroup}),
    make<protocol::SaslHandshakeRequest, handle_sasl_handshake>(std::nullopt),
    make<protocol::SaslAuthenticateRequest, handle_sasl_authenticate>(std::nullopt),
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
