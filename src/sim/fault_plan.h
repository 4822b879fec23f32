// FaultPlan: which faults are on in one run, and how often they happen.
#pragma once

#include "base/random.h"
#include "sim/file_system.h"
#include "sim/metadata_log.h"
#include "sim/network.h"
#include "sim/object_store.h"

namespace varve::sim {

// What befalls whole nodes and services: the mean time between two events of a kind, over all nodes; zero: never.
struct NemesisPlan {
  Duration kill{0};
  Duration power_cut{0};
  Duration power_cut_in_disk_call{0};  // the power fails inside one of the next calls to the disk
  Duration kill_all{0};
  Duration pause{0};
  Duration isolate{0};            // a node from all others
  Duration partition{0};          // a pair of nodes from each other
  Duration service_partition{0};  // a node from a service
  Duration service_down{0};
  Duration service_full{0};
  Duration cut_connection{0};
  Duration clock_jump{0};
};

struct FaultPlan {
  StoreFaults store;
  LogFaults log;
  NetworkFaults network;
  FileFaults files;
  NemesisPlan nemesis;

  // Swarm testing: each fault is off in about half of the runs, so that combinations differ and no fault hides
  // what another would show; where it is on its rate is drawn too.
  static FaultPlan draw(Random& random);
};

}  // namespace varve::sim
