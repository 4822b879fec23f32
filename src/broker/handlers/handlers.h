// The handlers: one function an API, one file a function. handler_table.cc lists them.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "broker/handlers/request.h"
#include "broker/handlers/services.h"
#include "protocol/messages/alter_configs.h"
#include "protocol/messages/api_versions.h"
#include "protocol/messages/create_partitions.h"
#include "protocol/messages/create_topics.h"
#include "protocol/messages/delete_groups.h"
#include "protocol/messages/delete_records.h"
#include "protocol/messages/delete_topics.h"
#include "protocol/messages/describe_cluster.h"
#include "protocol/messages/describe_configs.h"
#include "protocol/messages/describe_groups.h"
#include "protocol/messages/describe_log_dirs.h"
#include "protocol/messages/describe_topic_partitions.h"
#include "protocol/messages/fetch.h"
#include "protocol/messages/find_coordinator.h"
#include "protocol/messages/heartbeat.h"
#include "protocol/messages/incremental_alter_configs.h"
#include "protocol/messages/init_producer_id.h"
#include "protocol/messages/join_group.h"
#include "protocol/messages/leave_group.h"
#include "protocol/messages/list_groups.h"
#include "protocol/messages/list_offsets.h"
#include "protocol/messages/metadata.h"
#include "protocol/messages/offset_commit.h"
#include "protocol/messages/offset_delete.h"
#include "protocol/messages/offset_fetch.h"
#include "protocol/messages/offset_for_leader_epoch.h"
#include "protocol/messages/produce.h"
#include "protocol/messages/sasl_authenticate.h"
#include "protocol/messages/sasl_handshake.h"
#include "protocol/messages/sync_group.h"

namespace varve::broker {

// What a handler answers: a response, nothing (acks=0), or that the connection has to be closed.
template <class Response>
struct Answer {
  std::optional<Response> response;
  std::optional<std::string> close_reason;

  // Implicit, so that a handler can return its response.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Answer(Response value) : response(std::move(value)) {}
  static Answer none() { return Answer(); }
  static Answer close(std::string reason) {
    Answer answer;
    answer.close_reason = std::move(reason);
    return answer;
  }

 private:
  Answer() = default;
};
template <class Response>
using HandlerTask = runtime::Task<Answer<Response>>;

// All run on the connection's executor. The context lives as long as the task.
HandlerTask<protocol::ProduceResponse> handle_produce(Services& services, const RequestContext& context,
                                                      protocol::ProduceRequest request);
HandlerTask<protocol::FetchResponse> handle_fetch(Services& services, const RequestContext& context,
                                                  protocol::FetchRequest request);
HandlerTask<protocol::ListOffsetsResponse> handle_list_offsets(Services& services,
                                                               const RequestContext& context,
                                                               protocol::ListOffsetsRequest request);
HandlerTask<protocol::MetadataResponse> handle_metadata(Services& services, const RequestContext& context,
                                                        protocol::MetadataRequest request);
HandlerTask<protocol::ApiVersionsResponse> handle_api_versions(Services& services,
                                                               const RequestContext& context,
                                                               protocol::ApiVersionsRequest request);
HandlerTask<protocol::CreateTopicsResponse> handle_create_topics(Services& services,
                                                                 const RequestContext& context,
                                                                 protocol::CreateTopicsRequest request);
HandlerTask<protocol::DeleteTopicsResponse> handle_delete_topics(Services& services,
                                                                 const RequestContext& context,
                                                                 protocol::DeleteTopicsRequest request);
HandlerTask<protocol::InitProducerIdResponse> handle_init_producer_id(
    Services& services, const RequestContext& context, protocol::InitProducerIdRequest request);
HandlerTask<protocol::FindCoordinatorResponse> handle_find_coordinator(
    Services& services, const RequestContext& context, protocol::FindCoordinatorRequest request);
HandlerTask<protocol::DescribeClusterResponse> handle_describe_cluster(
    Services& services, const RequestContext& context, protocol::DescribeClusterRequest request);
HandlerTask<protocol::DescribeConfigsResponse> handle_describe_configs(
    Services& services, const RequestContext& context, protocol::DescribeConfigsRequest request);
HandlerTask<protocol::DescribeTopicPartitionsResponse> handle_describe_topic_partitions(
    Services& services, const RequestContext& context, protocol::DescribeTopicPartitionsRequest request);
HandlerTask<protocol::OffsetForLeaderEpochResponse> handle_offset_for_leader_epoch(
    Services& services, const RequestContext& context, protocol::OffsetForLeaderEpochRequest request);
HandlerTask<protocol::DeleteRecordsResponse> handle_delete_records(Services& services,
                                                                   const RequestContext& context,
                                                                   protocol::DeleteRecordsRequest request);
HandlerTask<protocol::DescribeLogDirsResponse> handle_describe_log_dirs(
    Services& services, const RequestContext& context, protocol::DescribeLogDirsRequest request);
HandlerTask<protocol::CreatePartitionsResponse> handle_create_partitions(
    Services& services, const RequestContext& context, protocol::CreatePartitionsRequest request);
HandlerTask<protocol::AlterConfigsResponse> handle_alter_configs(Services& services,
                                                                 const RequestContext& context,
                                                                 protocol::AlterConfigsRequest request);
HandlerTask<protocol::IncrementalAlterConfigsResponse> handle_incremental_alter_configs(
    Services& services, const RequestContext& context, protocol::IncrementalAlterConfigsRequest request);
HandlerTask<protocol::JoinGroupResponse> handle_join_group(Services& services, const RequestContext& context,
                                                           protocol::JoinGroupRequest request);
HandlerTask<protocol::SyncGroupResponse> handle_sync_group(Services& services, const RequestContext& context,
                                                           protocol::SyncGroupRequest request);
HandlerTask<protocol::HeartbeatResponse> handle_heartbeat(Services& services, const RequestContext& context,
                                                          protocol::HeartbeatRequest request);
HandlerTask<protocol::LeaveGroupResponse> handle_leave_group(Services& services,
                                                             const RequestContext& context,
                                                             protocol::LeaveGroupRequest request);
HandlerTask<protocol::OffsetCommitResponse> handle_offset_commit(Services& services,
                                                                 const RequestContext& context,
                                                                 protocol::OffsetCommitRequest request);
HandlerTask<protocol::OffsetFetchResponse> handle_offset_fetch(Services& services,
                                                               const RequestContext& context,
                                                               protocol::OffsetFetchRequest request);
HandlerTask<protocol::OffsetDeleteResponse> handle_offset_delete(Services& services,
                                                                 const RequestContext& context,
                                                                 protocol::OffsetDeleteRequest request);
HandlerTask<protocol::DescribeGroupsResponse> handle_describe_groups(Services& services,
                                                                     const RequestContext& context,
                                                                     protocol::DescribeGroupsRequest request);
HandlerTask<protocol::ListGroupsResponse> handle_list_groups(Services& services,
                                                             const RequestContext& context,
                                                             protocol::ListGroupsRequest request);
HandlerTask<protocol::DeleteGroupsResponse> handle_delete_groups(Services& services,
                                                                 const RequestContext& context,
                                                                 protocol::DeleteGroupsRequest request);
HandlerTask<protocol::SaslHandshakeResponse> handle_sasl_handshake(Services& services,
                                                                   const RequestContext& context,
                                                                   protocol::SaslHandshakeRequest request);
HandlerTask<protocol::SaslAuthenticateResponse> handle_sasl_authenticate(
    Services& services, const RequestContext& context, protocol::SaslAuthenticateRequest request);

}  // namespace varve::broker
