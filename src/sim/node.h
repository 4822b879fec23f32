// Node: one simulated machine with one process on it, a broker or a client.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "sim/delay.h"
#include "sim/file_system.h"
#include "sim/world.h"

namespace varve::sim {

struct NodeOptions {
  std::string host;  // its name in the network and in traces
  size_t io_count = 2;
  std::array<Delay, runtime::kLaneCount> lanes{};  // how long a job takes
  // The node's wall clock is the world's, moved by `offset` and running fast by `drift`.
  Duration clock_offset{0};
  int64_t clock_drift_parts_per_million = 0;
};

// How a process ends before its time.
enum class CrashKind : uint8_t {
  kKilled,    // as by kill -9: what it wrote stays, its connections are reset
  kPowerCut,  // unsynced bytes and entries are lost, nobody is told
};

class Node;
class SimNetwork;

// A process of the node, from boot to crash: its Runtime. After the crash it stays, dead, until the world ends:
// what is posted to its executors is dropped, so that a late callback finds nothing to disturb.
class Process final : public runtime::Runtime {
 public:
  Process(Node& node, uint64_t life);

  MonotonicTime now() const override;
  WallTime wall_now() const override;
  uint64_t random_seed() override;
  runtime::Executor& core() override { return *core_; }
  size_t io_count() const override { return io_.size(); }
  runtime::Executor& io(size_t index) override { return *io_.at(index); }
  void offload(runtime::Lane lane, runtime::Job job) override;
  runtime::FileSystem& file_system() override;
  runtime::Network& network() override;

  Node& node() { return node_; }
  // The node's lives are numbered from 1.
  uint64_t life() const { return life_; }
  bool is_alive() const { return is_alive_; }
  // Alive and not paused.
  bool is_running() const;

 private:
  friend class Node;

  template <class Function>
  void each_executor(Function function);
  void refuse_jobs();
  void end();

  Node& node_;
  uint64_t life_;
  bool is_alive_ = true;
  SimExecutor* core_;
  std::vector<SimExecutor*> io_;
  std::array<SimExecutor*, runtime::kLaneCount> lanes_;
  std::unique_ptr<runtime::Network> network_;
  // When the one thread of the lanes that keep order is free again.
  std::array<MonotonicTime, runtime::kLaneCount> lane_free_at_{};
};

// Life: made after the world, destroyed before it; a process boots with it. The scenario owns the program that
// runs on process(), and on a crash destroys it after crash() has returned and before boot(): its frames are
// freed where they stand and reach nobody.
class Node {
 public:
  // Without a network for tests that need none.
  Node(World& world, NodeOptions options, SimNetwork* network = nullptr);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  World& world() { return world_; }
  const std::string& host() const { return options_.host; }

  bool is_up() const { return process_->is_alive(); }
  bool is_paused() const { return is_paused_; }
  // The current process, or the last one if the node is down.
  Process& process() { return *process_; }

  // As SIGSTOP and SIGCONT: nothing of the process runs, timers and messages pile up, time goes on.
  void pause();
  void resume();
  // Ends the process at once. From an event of the world, never from a job of this node.
  void crash(CrashKind kind);
  // Lets the power fail at a later changing call to the disk (SimFileSystem::cut_power_after). From that call on
  // nothing of the process runs; `then` is called in an event of the world, at once, to crash(kPowerCut) it.
  void cut_power_after(uint64_t disk_calls, std::function<void()> then);
  // Starts the next process. The node must be down.
  void boot();

  SimFileSystem& disk() { return disk_; }

  // Moves the wall clock, either way.
  void jump_clock(Duration by);
  WallTime wall_now() const;

 private:
  friend class Process;

  World& world_;
  NodeOptions options_;
  SimNetwork* network_;
  Random random_;
  SimFileSystem disk_;
  bool is_paused_ = false;
  std::vector<std::unique_ptr<Process>> lives_;
  Process* process_ = nullptr;
};

}  // namespace varve::sim
