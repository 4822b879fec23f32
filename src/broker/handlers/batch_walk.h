// What a Fetch has to know of the batches it sends, from their headers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace varve::broker {

struct BatchSummary {
  uint64_t records = 0;
  bool has_zstd = false;
};

// `pieces` joined are whole record batches (magic 2), one after another; a header may be cut anywhere. Reads the
// headers only.
BatchSummary summarize_batches(const std::vector<Slice>& pieces);

}  // namespace varve::broker
