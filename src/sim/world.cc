#include "sim/world.h"

#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace varve::sim {
namespace {

// The innermost world of this thread, for the CHECK hook alone, which has no other way to learn the seed.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local const World* checked_world = nullptr;

void print_seed(std::string_view) {
  if (checked_world == nullptr) return;
  std::fprintf(stderr, "in the simulation with seed %llu, step %llu, at %.6f s\n",
               static_cast<unsigned long long>(checked_world->seed()),
               static_cast<unsigned long long>(checked_world->steps()),
               std::chrono::duration<double>(checked_world->now().since_zero()).count());
}

}  // namespace

// Cancels on destruction. The state is shared with the world's table and, once fired, with the queued job.
class World::SimTimer final : public runtime::Timer {
 public:
  SimTimer(World& world, std::shared_ptr<TimerState> state) : world_(world), state_(std::move(state)) {}
  ~SimTimer() override {
    // Frames destroyed from outside any step (the end of a test) are fine: nothing runs beside them.
    CHECK(state_->executor->is_closed() || state_->executor->is_current() || world_.current_ == nullptr,
          "timer of {} cancelled from another executor", state_->executor->name());
    world_.timers_.erase(state_->key);
    runtime::Job dropped = std::exchange(state_->job, nullptr);
  }

 private:
  World& world_;
  std::shared_ptr<TimerState> state_;
};

World::World(WorldOptions options)
    : options_(options), random_(options.seed), hash_(options.seed), outer_world_(checked_world) {
  checked_world = this;
  set_check_hook(print_seed);
}

World::~World() {
  for (auto& executor : executors_) executor->close();
  timers_.clear();
  checked_world = outer_world_;
}

SimExecutor& World::make_executor(std::string name) {
  executors_.push_back(std::make_unique<SimExecutor>(*this, std::move(name), executors_.size() + 1));
  return *executors_.back();
}

void World::at(MonotonicTime when, runtime::Job event) { add_timer(when, nullptr, std::move(event)); }

std::shared_ptr<World::TimerState> World::add_timer(MonotonicTime when, SimExecutor* executor,
                                                    runtime::Job job) {
  auto state = std::make_shared<TimerState>(TimerKey{when, next_timer_number_++}, executor, std::move(job));
  timers_.emplace(state->key, state);
  return state;
}

void World::drop_timers_of(const SimExecutor& executor) {
  std::vector<std::shared_ptr<TimerState>> dropped;
  std::erase_if(timers_, [&](auto& entry) {
    if (entry.second->executor != &executor) return false;
    dropped.push_back(std::move(entry.second));
    return true;
  });
  // Outside the table's iteration: freeing a job may cancel other timers.
  for (auto& state : dropped) runtime::Job job = std::exchange(state->job, nullptr);
}

void World::begin_step(uint64_t what) {
  now_ = now_ + options_.step_cost;
  ++steps_;
  fold(what);
}

bool World::fire_due_timers() {
  while (!timers_.empty() && timers_.begin()->first.when <= now_) {
    std::shared_ptr<TimerState> state = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    if (state->executor == nullptr) {
      begin_step(state->key.number);
      runtime::Job event = std::exchange(state->job, nullptr);
      event();
      return true;
    }
    state->executor->post([state] {
      runtime::Job job = std::exchange(state->job, nullptr);
      if (job) job();
    });
  }
  return false;
}

void World::run_job_of(SimExecutor& executor) {
  begin_step(executor.index_ << 32);
  runtime::Job job = std::move(executor.jobs_.front());
  executor.jobs_.pop_front();
  executor.update_ready();
  current_ = &executor;
  job();
  job = nullptr;  // what it holds is freed as part of it
  current_ = nullptr;
}

bool World::step() {
  CHECK(!in_step_, "a step inside a step");
  in_step_ = true;
  bool did_something = take_step();
  in_step_ = false;
  return did_something;
}

bool World::take_step() {
  if (fire_due_timers()) return true;
  if (!ready_.empty()) {
    run_job_of(*ready_[ready_.size() == 1 ? 0 : random_.below(ready_.size())]);
    return true;
  }
  if (timers_.empty() || timers_.begin()->first.when == MonotonicTime::never()) return false;
  now_ = timers_.begin()->first.when;
  return true;
}

RunEnd World::run_until(const std::function<bool()>& done) {
  while (!done()) {
    if (steps_ >= options_.steps_max) return RunEnd::kStepLimit;
    if (now_.since_zero() >= options_.time_max) return RunEnd::kTimeLimit;
    if (!step()) return RunEnd::kIdle;
  }
  return RunEnd::kDone;
}

RunEnd World::run_for(Duration span) {
  MonotonicTime end = now_ + span;
  at(end, [] {});  // or the clock would jump past it
  return run_until([this, end] { return now_ >= end; });
}

void World::fold(uint64_t value) {
  hash_ = (hash_ ^ value) * 0x9fb21c651e98df25ull;
  hash_ ^= hash_ >> 32;
}

void World::happened(std::string_view what) {
  auto found = happenings_.find(what);
  if (found == happenings_.end()) found = happenings_.emplace(what, 0).first;
  ++found->second;
  fold(hash64(what));
  trace("! {}", what);
}

void World::print_trace(const std::string& text) {
  std::fprintf(options_.trace, "%12.6f %s\n", std::chrono::duration<double>(now_.since_zero()).count(),
               text.c_str());
}

SimExecutor::SimExecutor(World& world, std::string name, uint64_t index)
    : world_(world), name_(std::move(name)), index_(index) {}

void SimExecutor::post(runtime::Job job) {
  if (is_closed_) return;
  jobs_.push_back(std::move(job));
  update_ready();
}

std::unique_ptr<runtime::Timer> SimExecutor::start_timer(MonotonicTime when, runtime::Job job) {
  CHECK(is_current() || is_closed_, "timer of {} started from another executor", name_);
  if (is_closed_) return std::make_unique<runtime::Timer>();
  return std::make_unique<World::SimTimer>(world_, world_.add_timer(when, this, std::move(job)));
}

void SimExecutor::post_at(MonotonicTime when, runtime::Job job) {
  if (!is_closed_) world_.add_timer(when, this, std::move(job));
}

void SimExecutor::close() {
  CHECK(!is_current(), "{} closed by its own job", name_);
  is_closed_ = true;
  std::deque<runtime::Job> dropped;
  dropped.swap(jobs_);
  update_ready();
  world_.drop_timers_of(*this);
}

void SimExecutor::set_paused(bool paused) {
  is_paused_ = paused;
  update_ready();
}

void SimExecutor::update_ready() {
  bool should_be_ready = !jobs_.empty() && !is_paused_;
  std::vector<SimExecutor*>& ready = world_.ready_;
  if (should_be_ready && ready_slot_ == kNotReady) {
    ready_slot_ = ready.size();
    ready.push_back(this);
  } else if (!should_be_ready && ready_slot_ != kNotReady) {
    ready.back()->ready_slot_ = ready_slot_;
    ready[ready_slot_] = ready.back();
    ready.pop_back();
    ready_slot_ = kNotReady;
  }
}

}  // namespace varve::sim
