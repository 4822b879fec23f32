#include "sim/nemesis.h"

#include <algorithm>

namespace varve::sim {

Nemesis::Nemesis(World& world, const NemesisPlan& plan, std::vector<NemesisVictim> victims,
                 SimNetwork& network, std::vector<Service*> services)
    : world_(world),
      plan_(plan),
      victims_(std::move(victims)),
      network_(network),
      services_(std::move(services)) {}

void Nemesis::start() {
  is_running_ = true;
  schedule(plan_.kill, &Nemesis::act_kill);
  schedule(plan_.power_cut, &Nemesis::act_power_cut);
  schedule(plan_.power_cut_in_disk_call, &Nemesis::act_power_cut_in_disk_call);
  schedule(plan_.kill_all, &Nemesis::act_kill_all);
  schedule(plan_.pause, &Nemesis::act_pause);
  schedule(plan_.isolate, &Nemesis::act_isolate);
  schedule(plan_.partition, &Nemesis::act_partition);
  schedule(plan_.service_partition, &Nemesis::act_service_partition);
  schedule(plan_.service_down, &Nemesis::act_service_down);
  schedule(plan_.service_full, &Nemesis::act_service_full);
  schedule(plan_.cut_connection, &Nemesis::act_cut_connection);
  schedule(plan_.clock_jump, &Nemesis::act_clock_jump);
}

void Nemesis::stop() {
  is_running_ = false;
  network_.heal();
  for (Service* service : services_) {
    service->set_down(false);
    service->set_full(false);
    for (NemesisVictim& victim : victims_) service->set_reachable(victim.node->host(), true);
  }
  for (NemesisVictim& victim : victims_) {
    victim.node->resume();
    victim.node->disk().cancel_power_cut();
    if (!victim.node->is_up()) victim.boot();
  }
}

void Nemesis::schedule(Duration mean, void (Nemesis::*act)()) {
  if (mean == Duration{0}) return;
  world_.after(Duration(world_.random().between(0, 2 * mean.count())), [this, mean, act] {
    if (!is_running_) return;
    (this->*act)();
    schedule(mean, act);
  });
}

void Nemesis::after(Duration low, Duration high, std::function<void()> undo) {
  world_.after(Duration(world_.random().between(low.count(), high.count())), [this, undo = std::move(undo)] {
    if (is_running_) undo();
  });
}

NemesisVictim* Nemesis::choose_up() {
  std::vector<NemesisVictim*> up;
  for (NemesisVictim& victim : victims_) {
    if (victim.node->is_up()) up.push_back(&victim);
  }
  return up.empty() ? nullptr : up[world_.random().below(up.size())];
}

void Nemesis::crash(NemesisVictim& victim, CrashKind kind) {
  victim.crash(kind);
  // After stop() too: nobody else would boot it.
  world_.after(Duration(world_.random().between(0, Duration(30s).count())), [&victim] {
    if (!victim.node->is_up()) victim.boot();
  });
}

void Nemesis::crash_one(CrashKind kind) {
  if (NemesisVictim* victim = choose_up()) crash(*victim, kind);
}

void Nemesis::act_power_cut_in_disk_call() {
  NemesisVictim* victim = choose_up();
  if (victim == nullptr) return;
  // Mostly the very next ones, sometimes one much later.
  uint64_t calls = 1 + world_.random().below(uint64_t{1} << world_.random().below(7));
  victim->node->cut_power_after(calls, [this, victim] {
    world_.happened("nemesis.power_cut_in_disk_call");
    crash(*victim, CrashKind::kPowerCut);
  });
}

void Nemesis::act_kill_all() {
  world_.happened("nemesis.kill_all");
  for (NemesisVictim& victim : victims_) {
    if (victim.node->is_up()) crash(victim, CrashKind::kKilled);
  }
}

void Nemesis::act_pause() {
  NemesisVictim* victim = choose_up();
  if (victim == nullptr || victim->node->is_paused()) return;
  victim->node->pause();
  // Up to twice the session time of the log: some pauses cost the session, others do not.
  after(10ms, 40s, [victim] { victim->node->resume(); });
}

void Nemesis::act_isolate() {
  std::string host = victims_[world_.random().below(victims_.size())].node->host();
  network_.set_isolated(host, true);
  after(10ms, 40s, [this, host] { network_.set_isolated(host, false); });
}

void Nemesis::act_partition() {
  std::string one = victims_[world_.random().below(victims_.size())].node->host();
  std::string other = victims_[world_.random().below(victims_.size())].node->host();
  if (one == other) return;
  network_.set_partitioned(one, other, true);
  after(10ms, 40s, [this, one, other] { network_.set_partitioned(one, other, false); });
}

void Nemesis::act_service_partition() {
  if (services_.empty()) return;
  Service* service = services_[world_.random().below(services_.size())];
  std::string host = victims_[world_.random().below(victims_.size())].node->host();
  world_.happened("nemesis.service_partition");
  service->set_reachable(host, false);
  after(10ms, 40s, [service, host] { service->set_reachable(host, true); });
}

void Nemesis::act_service_down() {
  if (services_.empty()) return;
  Service* service = services_[world_.random().below(services_.size())];
  world_.happened("nemesis.service_down");
  service->set_down(true);
  after(10ms, 20s, [service] { service->set_down(false); });
}

void Nemesis::act_service_full() {
  if (services_.empty()) return;
  Service* service = services_[world_.random().below(services_.size())];
  world_.happened("nemesis.service_full");
  service->set_full(true);
  after(10ms, 20s, [service] { service->set_full(false); });
}

void Nemesis::act_clock_jump() {
  Node& node = *victims_[world_.random().below(victims_.size())].node;
  node.jump_clock(Duration(world_.random().between(Duration(-120s).count(), Duration(120s).count())));
}

}  // namespace varve::sim
