// ForeignProcess: somebody who writes into the namespace what no broker of this log wrote, and expects it to stay.
#pragma once

#include <string>

#include "base/ids.h"
#include "sim/object_store.h"

namespace varve::sim {

// Life: of one run; stop() before the end, or with the world.
class ForeignProcess {
 public:
  ForeignProcess(World& world, SimObjectStore& store, std::string key_prefix);

  // Writes something now and then. Only once a broker has claimed the namespace.
  void start(Duration mean_gap);
  void stop() { is_running_ = false; }

 private:
  void write();
  std::string draw_key();

  World& world_;
  SimObjectStore& store_;
  const std::string key_prefix_;
  Random random_;
  bool is_running_ = false;
  Duration mean_gap_{0};
};

}  // namespace varve::sim
