// Bugs that the simulator's checkers must find. All false outside sim/ (checked by tools/tidy.py); each breaks
// one invariant of docs/architecture.md.
#pragma once

namespace varve {

struct PlantedBugs {
  // Invariant 1
  bool ack_before_own_apply = false;
  bool ack_after_reject = false;
  // Invariant 2
  bool apply_reads_local_broker = false;
  // Invariant 3
  bool lost_reply_read_as_failure = false;
  bool no_sequence_check = false;
  // Invariant 4
  bool no_fence_check = false;
  // Invariant 5
  bool absence_without_sync = false;
  // Invariants 6 and 7
  bool delete_without_fence = false;
  bool sweep_foreign_nonce = false;
  // Invariant 8
  bool trim_above_snapshot = false;
  // Invariant 9
  bool chain_order_ignored = false;
  bool run_commits_twice = false;
  // Invariant 10
  bool serve_corrupt_read = false;
  bool failed_put_acknowledged = false;
  // Invariant 11
  bool unbounded_buffer = false;
  // Invariant 14: what apply holds against owners of the past,
  bool group_owner_unchecked = false;
  bool group_version_unchecked = false;
  bool owner_change_unchecked = false;
  bool commit_generation_unchecked = false;
  // and what a coordinator owes its members.
  bool new_owner_forgets_members = false;
  bool offsets_lost_at_snapshot = false;
  bool sync_reply_before_apply = false;
};

}  // namespace varve
