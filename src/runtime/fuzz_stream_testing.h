// What fuzzers of readers of connections stand on: the input as a connection, and an executor that ends when nothing is
// left to do.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "base/check.h"
#include "runtime/executor.h"
#include "runtime/network.h"
#include "runtime/task_scope.h"

namespace varve::runtime {

// Runs jobs where run() is called, and has no time. Life: of one input.
class InlineExecutor final : public Executor {
 public:
  void post(Job job) override { jobs_.push_back(std::move(job)); }
  std::unique_ptr<Timer> start_timer(MonotonicTime, Job) override { return nullptr; }
  MonotonicTime now() const override { return MonotonicTime(); }
  bool is_current() const override { return true; }
  std::string_view name() const override { return "inline"; }

  // Until there are no more jobs; CHECKs that the task has ended by then.
  void run(Task<> task) {
    TaskScope scope;
    scope.spawn(*this, "fuzz", std::move(task));
    while (!jobs_.empty()) {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
    CHECK(scope.size() == 0);
  }

 private:
  std::deque<Job> jobs_;
};

// Gives the input in pieces whose sizes the input itself chooses, and then the end. What is written goes nowhere.
class InputStream final : public Stream {
 public:
  explicit InputStream(ByteView input) : input_(input) {}

  Task<NetResult<size_t>> read_some(MutableByteView into) override {
    size_t piece =
        input_.empty() ? 0 : std::min<size_t>({input_[0] % 97 + size_t{1}, input_.size(), into.size()});
    std::copy_n(input_.begin(), piece, into.begin());
    input_ = input_.subspan(piece);
    co_return piece;
  }
  Task<NetResult<void>> write(std::span<const ByteView>) override { co_return NetResult<void>(); }
  void close() override {}
  const Address& peer() const override { return peer_; }

 private:
  ByteView input_;
  Address peer_;
};

}  // namespace varve::runtime
