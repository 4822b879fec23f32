// Proposing to the metadata log for a client that does not wait for ever.
#pragma once

#include <vector>

#include "metadata/client/metadata_client.h"
#include "runtime/runtime.h"

namespace varve::broker {

using ProposedOutcome = Result<metadata::CommandOutcome, metadata::ProposeError>;

// The outcome of each command, once this broker has applied it; all are on their way at once, so that they share
// entries. At `deadline`, or when the task is asked to stop: kUnknown, and the command may still land.
runtime::Task<std::vector<ProposedOutcome>> propose_all(runtime::Runtime& runtime,
                                                        metadata::MetadataClient& metadata,
                                                        std::vector<metadata::Command> commands,
                                                        MonotonicTime deadline);

// The same for one.
runtime::Task<ProposedOutcome> propose_one(runtime::Runtime& runtime, metadata::MetadataClient& metadata,
                                           metadata::Command command, MonotonicTime deadline);

}  // namespace varve::broker
