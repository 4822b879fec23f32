#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;

// A producer id is for who may write: any topic, or by a right of its own.
ErrorCode access_error(const Services& services, const RequestContext& context,
                       const protocol::InitProducerIdRequest& request) {
  if (request.transactional_id) {
    return is_allowed(services, context, Operation::kWrite, ResourceType::kTransactionalId,
                      *request.transactional_id)
               ? ErrorCode::kNone
               : ErrorCode::kTransactionalIdAuthorizationFailed;
  }
  bool may_write = is_allowed_on_cluster(services, context, Operation::kIdempotentWrite) ||
                   services.authorizer.allows_any(context.principal, context.peer.host, Operation::kWrite,
                                                  ResourceType::kTopic);
  return may_write ? ErrorCode::kNone : ErrorCode::kClusterAuthorizationFailed;
}

}  // namespace

using protocol::InitProducerIdResponse;

HandlerTask<InitProducerIdResponse> handle_init_producer_id(Services& services, const RequestContext& context,
                                                            protocol::InitProducerIdRequest request) {
  InitProducerIdResponse response;
  response.producer_epoch = kNoProducerEpoch;
  response.error_code = access_error(services, context, request);
  if (response.error_code != ErrorCode::kNone) co_return response;
  bool has_id = request.producer_id != kNoProducerId;
  bool has_epoch = request.producer_epoch != kNoProducerEpoch;
  if (has_id != has_epoch || (request.transactional_id && request.transactional_id->empty())) {
    response.error_code = ErrorCode::kInvalidRequest;
    co_return response;
  }
  if (request.transactional_id) {
    // Not retriable on purpose: a client that waited for a coordinator would wait for ever.
    response.error_code = ErrorCode::kUnsupportedVersion;
    co_return response;
  }
  // Without a transactional id every request gets an id of its own, whatever it had (as Kafka).
  auto id = co_await services.producer_ids.next(context.deadline);
  if (!id) {
    response.error_code = kCannotTellProducer;
    co_return response;
  }
  response.producer_id = *id;
  response.producer_epoch = ProducerEpoch(0);
  co_return response;
}

}  // namespace varve::broker
