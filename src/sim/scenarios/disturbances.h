// Disturbances: so many crashes, pauses and orderly restarts of brokers at random times of a span, in every run; some
// brokers then lose the log or the store at the next request of a kind that is seldom sent.
#pragma once

#include <vector>

#include "sim/service.h"
#include "sim/workload/broker_machine.h"

namespace varve::sim {

// Beside the nemesis, which draws whether and how often it acts. Life: outlives the world's run.
class Disturbances {
 public:
  Disturbances(World& world, std::vector<BrokerMachine*> brokers, Service& log, Service& store);

  void start(size_t count, Duration span);
  // Nothing more happens; what is down or paused is the nemesis's stop() to bring back.
  void stop() {
    is_running_ = false;
    log_.forget_cuts();
    store_.forget_cuts();
  }

 private:
  void disturb();
  void pause(BrokerMachine& broker);
  void crash(BrokerMachine& broker);
  // Perhaps, for a time.
  void lose_service(BrokerMachine& broker);

  World& world_;
  std::vector<BrokerMachine*> brokers_;
  Service& log_;
  Service& store_;
  bool is_running_ = false;
};

}  // namespace varve::sim
