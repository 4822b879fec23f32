#include "runtime/semaphore.h"

#include <stop_token>
#include <utility>
#include <vector>

namespace varve::runtime {

struct Semaphore::State : std::enable_shared_from_this<State> {
  struct Waiter {
    uint64_t units;
    // Carries its permit: if the waiter is gone or was stopped, the permit is dropped and gives its units back.
    Completion<std::optional<Permit>> granted;
  };

  std::mutex mutex;
  uint64_t capacity = 0;
  uint64_t held = 0;
  uint64_t next_ticket = 0;
  std::map<uint64_t, Waiter> waiters;  // in order of arrival

  bool has_room_for(uint64_t units) const {
    return held == 0 || (held < capacity && units <= capacity - held);
  }

  // Runs `change` and then serves whoever can be served, outside the lock: a permit that finds its waiter gone
  // comes back here.
  template <class Change>
  void serve_after(Change change) {
    std::vector<Waiter> served;
    {
      std::lock_guard lock(mutex);
      change();
      while (!waiters.empty() && has_room_for(waiters.begin()->second.units)) {
        held += waiters.begin()->second.units;
        served.push_back(std::move(waiters.extract(waiters.begin()).mapped()));
      }
    }
    for (Waiter& waiter : served) waiter.granted.set(Permit(shared_from_this(), waiter.units));
  }
};

Semaphore::Semaphore(uint64_t capacity) : state_(std::make_shared<State>()) { state_->capacity = capacity; }

Task<std::optional<Semaphore::Permit>> Semaphore::acquire(uint64_t units) {
  TaskContext& context = co_await this_context();
  if (context.stop.stop_requested()) co_return std::nullopt;
  if (auto permit = try_acquire(units)) co_return std::move(permit);

  std::shared_ptr<State> state = state_;
  Completion<std::optional<Permit>> granted;
  uint64_t ticket = 0;
  state->serve_after([&] {
    ticket = state->next_ticket++;
    state->waiters.emplace(ticket, State::Waiter{units, granted});
  });
  std::stop_callback on_stop(context.stop, [granted] { granted.set(std::nullopt); });
  std::optional<Permit> permit = co_await granted.wait();
  // Stopped: leave the queue, whose next may need less.
  if (!permit) state->serve_after([&] { state->waiters.erase(ticket); });
  co_return std::move(permit);
}

std::optional<Semaphore::Permit> Semaphore::try_acquire(uint64_t units) {
  std::lock_guard lock(state_->mutex);
  if (!state_->waiters.empty() || !state_->has_room_for(units)) return std::nullopt;
  state_->held += units;
  return Permit(state_, units);
}

void Semaphore::set_capacity(uint64_t capacity) {
  state_->serve_after([&] { state_->capacity = capacity; });
}

uint64_t Semaphore::held() const {
  std::lock_guard lock(state_->mutex);
  return state_->held;
}

size_t Semaphore::waiting() const {
  std::lock_guard lock(state_->mutex);
  return state_->waiters.size();
}

Semaphore::Permit& Semaphore::Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    release();
    state_ = std::move(other.state_);
    units_ = other.units_;
  }
  return *this;
}

void Semaphore::Permit::release() {
  if (auto state = std::exchange(state_, nullptr)) {
    state->serve_after([&] { state->held -= units_; });
  }
}

}  // namespace varve::runtime
