#include "sim/node.h"

#include "sim/network.h"

namespace varve::sim {
namespace {

// Where the simulated calendar starts: 2026-01-01 00:00 UTC.
constexpr int64_t kEpochMs = 1'767'225'600'000;

bool keeps_order(runtime::Lane lane) { return lane == runtime::Lane::kLog || lane == runtime::Lane::kBulk; }

}  // namespace

Process::Process(Node& node, uint64_t life) : node_(node), life_(life) {
  World& world = node.world_;
  auto name = [&](std::string_view part) { return fmt::format("{}.{}/{}", node.host(), life, part); };
  core_ = &world.make_executor(name("core"));
  for (size_t i = 0; i < node.options_.io_count; ++i) {
    io_.push_back(&world.make_executor(name(fmt::format("io{}", i))));
  }
  constexpr std::array<std::string_view, runtime::kLaneCount> kLaneNames = {"log", "disk", "bulk", "resolve"};
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = &world.make_executor(name(kLaneNames[i]));
  if (node.network_ != nullptr) network_ = node.network_->join(*this);
}

MonotonicTime Process::now() const { return node_.world_.now(); }
WallTime Process::wall_now() const { return node_.wall_now(); }
uint64_t Process::random_seed() { return node_.random_.next(); }

bool Process::is_running() const { return is_alive_ && !node_.is_paused_; }

void Process::offload(runtime::Lane lane, runtime::Job job) {
  size_t index = static_cast<size_t>(lane);
  Duration takes = node_.options_.lanes[index].draw(node_.random_);
  MonotonicTime starts = now();
  if (keeps_order(lane)) starts = std::max(starts, lane_free_at_[index]);
  lane_free_at_[index] = starts + takes;
  lanes_[index]->post_at(starts + takes, std::move(job));
}

runtime::FileSystem& Process::file_system() { return node_.disk_; }
runtime::Network& Process::network() {
  CHECK(network_ != nullptr, "{} has no network", node_.host());
  return *network_;
}

template <class Function>
void Process::each_executor(Function function) {
  function(*core_);
  for (SimExecutor* executor : io_) function(*executor);
  for (SimExecutor* executor : lanes_) function(*executor);
}

void Process::refuse_jobs() {
  each_executor([](SimExecutor& executor) { executor.refuse_jobs(); });
}

void Process::end() {
  is_alive_ = false;
  // Before the first queued job is freed: freeing one may post to another executor.
  refuse_jobs();
  each_executor([](SimExecutor& executor) { executor.close(); });
}

Node::Node(World& world, NodeOptions options, SimNetwork* network)
    : world_(world),
      options_(std::move(options)),
      network_(network),
      random_(world.random().fork()),
      disk_(random_.next()) {
  disk_.set_fault_observer([this](std::string_view fault) { world_.happened(fault); });
  boot();
}

void Node::pause() {
  CHECK(is_up());
  if (is_paused_) return;
  is_paused_ = true;
  world_.happened("node.paused");
  world_.trace("{} pauses", host());
  process_->each_executor([](SimExecutor& executor) { executor.set_paused(true); });
}

void Node::resume() {
  if (!is_paused_) return;
  is_paused_ = false;
  world_.trace("{} resumes", host());
  process_->each_executor([](SimExecutor& executor) { executor.set_paused(false); });
}

void Node::crash(CrashKind kind) {
  CHECK(is_up());
  if (disk_.is_power_off()) kind = CrashKind::kPowerCut;  // it has failed already
  world_.trace("{} {}", host(), kind == CrashKind::kKilled ? "is killed" : "loses power");
  world_.happened(kind == CrashKind::kKilled ? "node.killed" : "node.power_cut");
  is_paused_ = false;
  process_->end();
  if (network_ != nullptr) network_->process_ended(*process_, kind);
  if (kind == CrashKind::kKilled) {
    disk_.kill_process();
  } else {
    disk_.cut_power();
  }
}

void Node::cut_power_after(uint64_t disk_calls, std::function<void()> then) {
  disk_.cut_power_after(disk_calls, [this, then = std::move(then)] {
    process_->refuse_jobs();
    world_.after(0ns, [process = process_, then] {
      if (process->is_alive()) then();
    });
  });
}

void Node::boot() {
  CHECK(process_ == nullptr || !is_up());
  lives_.push_back(std::make_unique<Process>(*this, lives_.size() + 1));
  process_ = lives_.back().get();
  world_.trace("{} boots, life {}", host(), process_->life());
}

void Node::jump_clock(Duration by) {
  world_.happened(by < 0ns ? "node.clock_jumps_back" : "node.clock_jumps_ahead");
  world_.trace("{} moves its clock by {} ms", host(), by.count() / 1'000'000);
  options_.clock_offset += by;
}

WallTime Node::wall_now() const {
  Duration elapsed = world_.now().since_zero();
  Duration drift(elapsed.count() / 1'000'000 * options_.clock_drift_parts_per_million);
  Duration shown = elapsed + drift + options_.clock_offset;
  return WallTime(kEpochMs + std::chrono::duration_cast<std::chrono::milliseconds>(shown).count());
}

}  // namespace varve::sim
