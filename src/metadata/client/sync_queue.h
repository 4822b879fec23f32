// SyncQueue: who waits for a sync, in rounds. Bookkeeping only, so that each rule has a test.
#pragma once

#include <vector>

#include "metadata/client/metadata_client.h"

namespace varve::metadata {

// A waiter joins the round after the one that runs, since that one may have read the tail before the caller came.
// One whose caller has given up (its completion is set) is forgotten soon. Core only; owned by the client.
class SyncQueue {
 public:
  using Waiter = runtime::Completion<Result<LogPosition, SyncError>>;

  // For the next round; answered with kStopping at once after stop().
  void add(Waiter waiter);
  // Set when somebody waits. One at a time.
  runtime::Completion<runtime::Done> wanted();
  // The waiters of a round that begins now.
  std::vector<Waiter> begin_round();
  // The tail could not be read: they wait for the next round.
  void put_back(std::vector<Waiter> waiters);
  // Answers all that wait with kStopping, and those to come.
  void stop();

  size_t size() const { return waiting_.size(); }

 private:
  void forget_those_gone();

  std::vector<Waiter> waiting_;
  runtime::Completion<runtime::Done> wanted_;
  bool is_stopped_ = false;
};

inline Result<LogPosition, SyncError> sync_stopped() {
  return fail(SyncErrc::kStopping, "this broker is stopping");
}

}  // namespace varve::metadata
