// Semaphore: a number of units (uploads, bytes of memory) that tasks hold while they use them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/completion.h"
#include "runtime/task.h"

namespace varve::runtime {

// First come, first served: who waits for much is not overtaken by who waits for little. Thread-safe; tasks of any
// executor may wait. Permits may outlive the semaphore.
class Semaphore {
 public:
  class Permit;

  // Capacity: units that may be held at once.
  explicit Semaphore(uint64_t capacity);

  // Waits for `units`; nullopt if the task was asked to stop first. A wish above the capacity is granted when
  // nobody else holds any, so that a limit set too low slows but does not block.
  Task<std::optional<Permit>> acquire(uint64_t units = 1);
  // At once or not at all; never ahead of those who wait.
  std::optional<Permit> try_acquire(uint64_t units = 1);

  // A lower capacity takes effect as permits come back.
  void set_capacity(uint64_t capacity);

  // Units held; may exceed the capacity after set_capacity() or a wish above it.
  uint64_t held() const;
  size_t waiting() const;

 private:
  struct State;

  std::shared_ptr<State> state_;
};

// Units held by their owner; gives them back when destroyed, on any thread.
class Semaphore::Permit {
 public:
  Permit(Permit&& other) noexcept = default;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { release(); }

  uint64_t units() const { return units_; }
  // Gives the units back now.
  void release();

 private:
  friend class Semaphore;
  Permit(std::shared_ptr<State> state, uint64_t units) : state_(std::move(state)), units_(units) {}

  std::shared_ptr<State> state_;  // null: given back, or moved away
  uint64_t units_;
};

}  // namespace varve::runtime
