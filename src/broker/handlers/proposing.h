// Proposing to the metadata log for a client that does not wait for ever.
#pragma once

#include "metadata/client/metadata_client.h"
#include "runtime/runtime.h"

namespace varve::broker {

// The outcome once this broker has applied the entry. At `deadline`, or when the task is asked to stop: kUnknown,
// and the entry may still land.
runtime::Task<Result<metadata::CommandOutcome, metadata::ProposeError>> propose_until(
    runtime::Runtime& runtime, metadata::MetadataClient& metadata, metadata::Command command,
    MonotonicTime deadline);

}  // namespace varve::broker
