#include "broker/handlers/authorization.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {

using protocol::DescribeClusterResponse;
using protocol::ErrorCode;

HandlerTask<DescribeClusterResponse> handle_describe_cluster(Services& services,
                                                             const RequestContext& context,
                                                             protocol::DescribeClusterRequest request) {
  constexpr int8_t kBrokers = 1;
  constexpr int8_t kControllers = 2;
  DescribeClusterResponse response;
  response.endpoint_type = kBrokers;
  if (request.endpoint_type != kBrokers) {
    response.error_code = request.endpoint_type == kControllers ? ErrorCode::kMismatchedEndpointType
                                                                : ErrorCode::kUnsupportedEndpointType;
    response.error_message = "this endpoint answers for brokers";
    co_return response;
  }
  std::shared_ptr<const metadata::MetadataImage> image = services.metadata.image();
  response.cluster_id = image->log_id.to_string();
  response.controller_id = controller_of(*image);
  for (const auto& [id, broker] : image->brokers) {
    const metadata::Endpoint* endpoint = endpoint_of(broker, context.listener);
    if (endpoint == nullptr) continue;
    auto& row = response.brokers.emplace_back();
    row.broker_id = id;
    row.host = endpoint->host;
    row.port = endpoint->port;
    if (!broker.rack.empty()) row.rack = broker.rack;
  }
  if (request.include_cluster_authorized_operations) {
    response.cluster_authorized_operations = cluster_operations(services, context);
  }
  co_return response;
}

}  // namespace varve::broker
