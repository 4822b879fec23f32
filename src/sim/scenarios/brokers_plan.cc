#include "sim/scenarios/brokers_plan.h"

#include <array>

namespace varve::sim {
namespace {

template <class T, size_t N>
T one_of(Random& random, const std::array<T, N>& choices) {
  return choices[random.below(N)];
}

// Brokers talk to services and clients, not to one another, and have no disks; crashes and pauses are drawn apart.
FaultPlan draw_faults(Random& random) {
  FaultPlan faults = FaultPlan::draw(random);
  faults.nemesis.kill = Duration{0};
  faults.nemesis.pause = Duration{0};
  faults.nemesis.partition = Duration{0};
  faults.nemesis.power_cut_in_disk_call = Duration{0};
  faults.files = {};
  return faults;
}

}  // namespace

BrokersPlan BrokersPlan::draw(Random& random) {
  BrokersPlan plan;
  plan.faults = draw_faults(random);
  plan.disturbances = static_cast<size_t>(random.between(5, 7));
  plan.limits = random.chance(1, 2) ? Limits::tiny() : Limits();
  // A member of a group holds three.
  plan.limits.connections_max = std::max<size_t>(plan.limits.connections_max, 64);
  plan.limits.connections_per_address_max = plan.limits.connections_max;
  // Mostly so short that uploads fail for good while their producers still wait.
  plan.limits.object_attempt_max = one_of(random, std::array<Duration, 2>{500ms, 2s});
  plan.limits.object_deadline_max = one_of(random, std::array<Duration, 3>{2s, 4s, 30s});
  plan.commit_interval = one_of(random, std::array<Duration, 4>{5ms, 20ms, 100ms, 250ms});
  plan.fence_interval = one_of(random, std::array<Duration, 3>{1s, 3s, 5min});
  // Mostly as often as can be, so that every fault of a trim comes up in enough runs.
  plan.snapshot_after_bytes =
      random.chance(1, 8) ? 64 * kMiB : one_of(random, std::array<uint64_t, 3>{100, 200, 500});
  plan.snapshot_after_time = one_of(random, std::array<Duration, 2>{2s, 10s});
  plan.has_stray_writer = random.chance(1, 4);
  plan.workload = WorkloadPlan::draw(random);
  std::vector<BrokerId> brokers = {BrokerId(0), BrokerId(1), BrokerId(2)};
  plan.workload.groups = draw_groups(random, brokers, plan.workload.tender.has_value());
  if (random.chance(1, 2)) {
    plan.workload.simple_group = SimpleGroupOptions{.name = served_group("simple", brokers),
                                                    .topics = {"lasting", "stamped", "mortal"}};
  }
  plan.rolls_back = random.chance(1, 8);
  return plan;
}

}  // namespace varve::sim
