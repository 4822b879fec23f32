// What a Fetch has to know of the batches it sends, from their headers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace varve::broker {

// Records in `pieces`, which joined are whole record batches (magic 2), one after another; a header may be cut
// anywhere. Reads the headers only.
uint64_t count_records(const std::vector<Slice>& pieces);

}  // namespace varve::broker
