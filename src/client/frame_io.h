// Whole frames of the Kafka protocol over a stream.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "client/error.h"
#include "runtime/network.h"

namespace varve::client {

// All bytes of the next frame after its length. kDisconnected at the end of the stream, kOverLimit above `bytes_max`
// (no memory is taken for it), kMalformed for a length that cannot be. The stream outlives the task.
runtime::Task<ClientResult<Slice>> read_frame(runtime::Stream& stream, size_t bytes_max);

// `frame` has its length in front (protocol::request_frame). kDisconnected.
runtime::Task<ClientResult<void>> write_frame(runtime::Stream& stream, std::vector<Slice> frame);

}  // namespace varve::client
