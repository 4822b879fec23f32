#include "storage/maintenance/orphans.h"

#include "metadata/state/object_key.h"

namespace varve::storage {

std::vector<std::string> find_orphans(const metadata::State& state, const OrphanRules& rules,
                                      const std::vector<std::string>& keys) {
  std::vector<std::string> orphans;
  for (const std::string& key : keys) {
    auto name = metadata::parse_wal_key(rules.key_prefix, key);
    if (!name || name->epoch >= state.fence_epoch()) continue;
    auto incarnation = state.incarnation_of(name->nonce);
    bool is_ours = name->log_id == rules.log_id && incarnation.has_value();
    if (!is_ours && !rules.bugs.sweep_foreign_nonce) continue;
    if (incarnation && state.knows_object({*incarnation, name->number})) continue;
    orphans.push_back(key);
  }
  return orphans;
}

}  // namespace varve::storage
