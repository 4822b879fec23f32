#include "sim/planted_bug_names.h"

#include <array>

namespace varve::sim {
namespace {

constexpr std::array kNames = {
    PlantedBugName{"ack_before_own_apply", &PlantedBugs::ack_before_own_apply},
    PlantedBugName{"ack_after_reject", &PlantedBugs::ack_after_reject},
    PlantedBugName{"apply_reads_local_broker", &PlantedBugs::apply_reads_local_broker},
    PlantedBugName{"lost_reply_read_as_failure", &PlantedBugs::lost_reply_read_as_failure},
    PlantedBugName{"no_sequence_check", &PlantedBugs::no_sequence_check},
    PlantedBugName{"no_fence_check", &PlantedBugs::no_fence_check},
    PlantedBugName{"absence_without_sync", &PlantedBugs::absence_without_sync},
    PlantedBugName{"delete_without_fence", &PlantedBugs::delete_without_fence},
    PlantedBugName{"sweep_foreign_nonce", &PlantedBugs::sweep_foreign_nonce},
    PlantedBugName{"trim_above_snapshot", &PlantedBugs::trim_above_snapshot},
    PlantedBugName{"chain_order_ignored", &PlantedBugs::chain_order_ignored},
    PlantedBugName{"run_commits_twice", &PlantedBugs::run_commits_twice},
    PlantedBugName{"serve_corrupt_read", &PlantedBugs::serve_corrupt_read},
    PlantedBugName{"failed_put_acknowledged", &PlantedBugs::failed_put_acknowledged},
    PlantedBugName{"unbounded_buffer", &PlantedBugs::unbounded_buffer},
    PlantedBugName{"group_owner_unchecked", &PlantedBugs::group_owner_unchecked},
    PlantedBugName{"group_version_unchecked", &PlantedBugs::group_version_unchecked},
    PlantedBugName{"owner_change_unchecked", &PlantedBugs::owner_change_unchecked},
    PlantedBugName{"commit_generation_unchecked", &PlantedBugs::commit_generation_unchecked},
    PlantedBugName{"new_owner_forgets_members", &PlantedBugs::new_owner_forgets_members},
    PlantedBugName{"offsets_lost_at_snapshot", &PlantedBugs::offsets_lost_at_snapshot},
    PlantedBugName{"sync_reply_before_apply", &PlantedBugs::sync_reply_before_apply},
};
static_assert(kNames.size() == sizeof(PlantedBugs), "a planted bug has no name here");

}  // namespace

std::span<const PlantedBugName> planted_bug_names() { return kNames; }

bool plant(PlantedBugs& bugs, std::string_view name) {
  for (const PlantedBugName& known : kNames) {
    if (known.name != name) continue;
    bugs.*known.member = true;
    return true;
  }
  return false;
}

}  // namespace varve::sim
