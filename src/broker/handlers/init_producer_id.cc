#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {

using protocol::ErrorCode;
using protocol::InitProducerIdResponse;

HandlerTask<InitProducerIdResponse> handle_init_producer_id(Services& services, const RequestContext& context,
                                                            protocol::InitProducerIdRequest request) {
  (void)context;
  InitProducerIdResponse response;
  response.producer_epoch = kNoProducerEpoch;
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
  auto id = co_await services.producer_ids.next(services.sync_deadline());
  if (!id) {
    response.error_code = kCannotTellProducer;
    co_return response;
  }
  response.producer_id = *id;
  response.producer_epoch = ProducerEpoch(0);
  co_return response;
}

}  // namespace varve::broker
