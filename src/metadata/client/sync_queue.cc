#include "metadata/client/sync_queue.h"

#include <bit>
#include <iterator>
#include <utility>

namespace varve::metadata {
namespace {

// From so many on they are looked through whenever their number has doubled.
constexpr size_t kWorthALook = 64;

}  // namespace

void SyncQueue::add(Waiter waiter) {
  if (is_stopped_) {
    waiter.set(sync_stopped());
    return;
  }
  // While the log does not answer, those whose deadline has passed must not pile up.
  if (waiting_.size() >= kWorthALook && std::has_single_bit(waiting_.size())) forget_those_gone();
  waiting_.push_back(std::move(waiter));
  wanted_.set(runtime::Done{});
}

runtime::Completion<runtime::Done> SyncQueue::wanted() {
  wanted_ = runtime::Completion<runtime::Done>();
  if (!waiting_.empty()) wanted_.set(runtime::Done{});
  return wanted_;
}

std::vector<SyncQueue::Waiter> SyncQueue::begin_round() { return std::exchange(waiting_, {}); }

void SyncQueue::put_back(std::vector<Waiter> waiters) {
  waiting_.insert(waiting_.begin(), std::make_move_iterator(waiters.begin()),
                  std::make_move_iterator(waiters.end()));
  forget_those_gone();
  if (is_stopped_) stop();
}

void SyncQueue::stop() {
  is_stopped_ = true;
  for (const Waiter& waiter : waiting_) waiter.set(sync_stopped());
  waiting_.clear();
}

void SyncQueue::forget_those_gone() {
  std::erase_if(waiting_, [](const Waiter& waiter) { return waiter.is_set(); });
}

}  // namespace varve::metadata
