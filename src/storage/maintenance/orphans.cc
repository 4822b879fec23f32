#include "storage/maintenance/orphans.h"

#include "metadata/state/object_key.h"

namespace varve::storage {

Orphans find_orphans(const metadata::State& state, const OrphanRules& rules,
                     const std::vector<std::string>& keys) {
  Orphans orphans;
  for (const std::string& key : keys) {
    auto name = metadata::parse_wal_key(rules.key_prefix, key);
    if (!name) continue;
    auto incarnation = state.incarnation_of(name->nonce);
    bool is_ours = name->log_id == rules.log_id && incarnation.has_value();
    if (!is_ours && !rules.bugs.sweep_foreign_nonce) continue;
    if (incarnation && state.knows_object({*incarnation, name->number})) continue;
    if (name->epoch >= state.fence_epoch()) {
      orphans.has_later = true;
    } else {
      orphans.keys.push_back(key);
    }
  }
  return orphans;
}

}  // namespace varve::storage
