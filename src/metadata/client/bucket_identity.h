// `_log/identity`: which metadata log a namespace of the bucket belongs to (docs/formats/keys.md).
#pragma once

#include <string>

#include "metadata/client/metadata_client.h"

namespace varve::metadata {

// "<prefix>/_log/identity"
std::string identity_key(std::string_view prefix);
// Text, three lines: "varve log identity 1", the log id in hexadecimal, the generation in decimal.
std::string identity_text(const LogIdentity& identity);

// Claims the namespace for this log, or finds that it has it already. `log_is_new`: the log held nothing when it
// was opened, so objects beside it are somebody else's. Also finds stores that ignore If-None-Match, which
// would make every published key overwritable.
// Run before the first put of a broker, in any io task.
runtime::Task<Result<void, StartError>> claim_namespace(object_store::ObjectStore& store, std::string prefix,
                                                        LogIdentity identity, bool log_is_new);

}  // namespace varve::metadata
