// Nemesis: crashes, pauses and cuts off whole nodes and services at random times.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/fault_plan.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/service.h"

namespace varve::sim {

// A node and what its owner does when it goes down or comes up. `crash` must crash the node and destroy the
// program on it; `boot` must boot it and start the program anew.
struct NemesisVictim {
  Node* node;
  std::function<void(CrashKind kind)> crash;
  std::function<void()> boot;
};

// Life: made after all it hurts; must outlive the world's run. After stop() everything is healed and up, and
// nothing more happens by its hand.
class Nemesis {
 public:
  Nemesis(World& world, const NemesisPlan& plan, std::vector<NemesisVictim> victims, SimNetwork& network,
          std::vector<Service*> services);

  void start();
  void stop();

 private:
  void schedule(Duration mean, void (Nemesis::*act)());
  void act_kill() { crash_one(CrashKind::kKilled); }
  void act_power_cut() { crash_one(CrashKind::kPowerCut); }
  void act_power_cut_in_disk_call();
  void act_kill_all();
  void act_pause();
  void act_isolate();
  void act_partition();
  void act_service_partition();
  void act_service_down();
  void act_service_full();
  void act_cut_connection() { network_.cut_one(); }
  void act_clock_jump();

  void crash_one(CrashKind kind);
  void crash(NemesisVictim& victim, CrashKind kind);
  NemesisVictim* choose_up();
  void after(Duration low, Duration high, std::function<void()> undo);

  World& world_;
  NemesisPlan plan_;
  std::vector<NemesisVictim> victims_;
  SimNetwork& network_;
  std::vector<Service*> services_;
  bool is_running_ = false;
};

}  // namespace varve::sim
