#include "sim/scenarios/disturbances.h"

namespace varve::sim {

Disturbances::Disturbances(World& world, std::vector<BrokerMachine*> brokers, Service& log, Service& store)
    : world_(world), brokers_(std::move(brokers)), log_(log), store_(store) {}

void Disturbances::start(size_t count, Duration span) {
  is_running_ = true;
  for (size_t i = 0; i < count; ++i) {
    world_.after(Duration(world_.random().between(0, span.count())), [this] {
      if (is_running_) disturb();
    });
  }
}

void Disturbances::disturb() {
  std::vector<BrokerMachine*> up;
  for (BrokerMachine* broker : brokers_) {
    if (broker->node().is_up() && !broker->node().is_paused()) up.push_back(broker);
  }
  if (up.empty()) return;
  BrokerMachine& broker = *up[world_.random().below(up.size())];
  switch (world_.random().below(4)) {
    case 0:
      return pause(broker);
    case 1:
      lose_service(broker);
      return broker.restart_gracefully();
    default:
      return crash(broker);
  }
}

// Some pauses cost the session in the log, others do not.
void Disturbances::pause(BrokerMachine& broker) {
  broker.node().pause();
  Duration span(world_.random().between(Duration(10ms).count(), Duration(40s).count()));
  world_.after(span, [this, &broker] {
    if (is_running_) broker.node().resume();
  });
}

void Disturbances::crash(BrokerMachine& broker) {
  broker.crash(CrashKind::kKilled);
  // Mostly soon, so that it meets what its former life left under way.
  Duration longest = world_.random().chance(1, 4) ? Duration(20s) : Duration(2s);
  world_.after(Duration(world_.random().between(0, longest.count())), [this, &broker] {
    if (broker.node().is_up()) return;
    broker.boot();
    lose_service(broker);
  });
}

// At a request that is seldom sent, so that each of them is met in enough runs.
void Disturbances::lose_service(BrokerMachine& broker) {
  Duration span(world_.random().between(Duration(10ms).count(), Duration(10s).count()));
  switch (world_.random().below(20)) {
    case 0:
      return log_.cut_off_at(broker.host(), "log.begin_session", span);
    case 1:
      return log_.cut_off_at(broker.host(), "log.end_session", span);
    case 2:
      return log_.cut_off_at(broker.host(), "log.trim", span);
    case 3:
      return store_.cut_off_at(broker.host(), "store.delete", span);
    default:
      return;
  }
}

}  // namespace varve::sim
