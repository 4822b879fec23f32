// Which objects in the bucket are nobody's: uploads that were never committed, and late copies of deleted ones.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/planted_bugs.h"
#include "metadata/state/state.h"

namespace varve::storage {

struct OrphanRules {
  std::string key_prefix;
  Uuid log_id;
  PlantedBugs bugs{};
};

struct Orphans {
  std::vector<std::string> keys;
  bool has_later = false;  // others may become orphans once the fence has passed them
};

// Of `keys`, those that may be deleted: WAL objects of this log (invariant 6: by log id and by a nonce that it
// registered), of an epoch that the fence has passed, so that no entry can refer to them any more, and that the
// state at the same position neither refers to nor keeps for its pending deletions (invariant 7). Core only.
Orphans find_orphans(const metadata::State& state, const OrphanRules& rules,
                     const std::vector<std::string>& keys);

}  // namespace varve::storage
