// The one place where causes of the lower layers become Kafka's error codes. Chosen by what clients do
// with a code: retriable where trying again can help, and never a code that says "not stored" of what may be.
#pragma once

#include <string_view>

#include "broker/group/group_messages.h"
#include "metadata/client/metadata_client.h"
#include "protocol/messages/error_code.h"
#include "protocol/records/record_error.h"
#include "storage/fetch/fetch.h"
#include "storage/ingest/append.h"

namespace varve::broker {

// A batch of a Produce that is not taken.
protocol::ErrorCode error_of(protocol::records::RecordErrc cause);
// kNone if the batch is stored. `by_id`: the request names topics by id.
protocol::ErrorCode error_of(storage::AppendVerdict verdict, bool by_id);
// For Fetch in `version` (old clients do not know the newer codes).
protocol::ErrorCode fetch_error_of(storage::FetchErrc cause, int16_t version, bool by_id);
protocol::ErrorCode list_offsets_error_of(storage::FetchErrc cause);
// A proposal (CreateTopics, DeleteTopics) whose fate or turn did not come.
protocol::ErrorCode error_of(metadata::ProposeErrc cause);

protocol::ErrorCode error_of(GroupErrc cause);

// A broker that cannot tell, because it has not heard of the log for too long (invariant 5), says so with a code
// that makes the client ask again, here or elsewhere.
inline constexpr protocol::ErrorCode kCannotTellPartition = protocol::ErrorCode::kNotLeaderOrFollower;
inline constexpr protocol::ErrorCode kCannotTellTopic = protocol::ErrorCode::kLeaderNotAvailable;
inline constexpr protocol::ErrorCode kCannotTellProducer = protocol::ErrorCode::kCoordinatorLoadInProgress;
inline constexpr protocol::ErrorCode kCannotTellGroup = protocol::ErrorCode::kCoordinatorNotAvailable;
inline constexpr protocol::ErrorCode kCannotTellAdmin = protocol::ErrorCode::kRequestTimedOut;

}  // namespace varve::broker
