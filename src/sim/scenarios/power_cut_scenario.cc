#include "sim/scenarios/power_cut_scenario.h"

#include <memory>

#include "sim/checkers/stillness.h"
#include "sim/workload/broker_machine.h"
#include "sim/workload/workload.h"

namespace varve::sim {
namespace {

constexpr const char* kHost = "broker0";
constexpr Duration kTimeToFinish = 5min;
constexpr Duration kFaultsMax = 60s;
constexpr Duration kQuietTime = 5s;
constexpr Duration kDarkMax = 2s;
constexpr Duration kLightMax = 10s;
constexpr uint64_t kServingCallsMax = 60;

// Everything that one run draws from its seed, beside the workload.
struct PowerCutPlan {
  Limits limits;
  Duration commit_interval;
  Duration fence_interval;
  uint64_t snapshot_after_bytes = 0;
  FileFaults files;
  NetworkFaults network;
  WorkloadPlan workload;

  static PowerCutPlan draw(Random& random) {
    PowerCutPlan plan;
    FaultPlan faults = FaultPlan::draw(random);
    if (random.chance(1, 2)) plan.limits = Limits::tiny();
    plan.commit_interval = random.chance(1, 2) ? Duration(5ms) : Duration(50ms);
    plan.fence_interval = random.chance(1, 2) ? Duration(3s) : Duration(1min);
    plan.snapshot_after_bytes = random.chance(1, 2) ? 3'000 : 64 * kMiB;
    // Failing calls end the broker often, so they are rarer than in the plan, and not in every run.
    if (random.chance(1, 2)) {
      plan.files = {.read_fails = static_cast<uint32_t>(random.below(6)),
                    .write_fails = static_cast<uint32_t>(random.below(6)),
                    .sync_fails = static_cast<uint32_t>(random.below(6)),
                    .sync_folder_fails = static_cast<uint32_t>(random.below(6))};
    }
    if (random.chance(1, 3)) plan.network = faults.network;
    plan.workload = WorkloadPlan::draw(random);
    return plan;
  }
};

class PowerCutRun {
 public:
  PowerCutRun(const RunOptions& options, uint32_t sync_lies)
      : world_({.seed = options.seed, .time_max = kTimeToFinish, .trace = options.trace}),
        plan_(PowerCutPlan::draw(world_.random())),
        broker_(world_, network_, broker_options(options.bugs)) {
    plan_.files.sync_lies = sync_lies;
  }

  Outcome run() {
    workload_.start();
    broker_.node().disk().set_faults(plan_.files);
    network_.set_faults(plan_.network);
    // Where hardly anything comes through, the disk sees no operation at which to cut.
    world_.after(kFaultsMax, [this] { stop_faults(); });
    arm();
    RunEnd end = run_until([this] { return cuts_ == kPowerCutsPerRun - 1; });
    stop_faults();
    workload_.end();
    if (end == RunEnd::kDone) end = run_until([this] { return is_settled(); });
    if (end == RunEnd::kDone) end = wait_for_stillness();
    // Now that nothing is under way, all that was promised must be on the disk.
    if (end == RunEnd::kDone) cut();
    if (end == RunEnd::kDone) end = run_until([this] { return is_settled(); });
    if (end == RunEnd::kDone) workload_.read_all();
    if (end == RunEnd::kDone) end = run_until([this] { return workload_.has_read_all(); });
    if (end == RunEnd::kDone) workload_.check();
    workload_.check_order();
    Outcome outcome = make_outcome(world_, findings_, end);
    if (outcome.verdict == Verdict::kStuck) {
      if (!broker_.is_serving()) outcome.message += "\n  the broker does not serve: " + broker_.problem();
      outcome.message += workload_.describe();
    }
    workload_.stop();
    return outcome;
  }

 private:
  BrokerMachineOptions broker_options(const PlantedBugs& bugs) {
    BrokerMachineOptions options;
    options.settings = simulated_settings(BrokerId(0), kHost);
    options.settings.produce_sync_flush = !plan_.workload.has_early_acks;
    options.settings.limits = plan_.limits;
    options.commit_interval = plan_.commit_interval;
    options.fence_interval = plan_.fence_interval;
    options.settings.snapshot_after_bytes = plan_.snapshot_after_bytes;
    options.snapshot_after_time = 10s;
    options.bugs = bugs;
    options.node.host = kHost;
    options.make_ground = [key_namespace = options.settings.key_namespace](Process& process) {
      return make_disk_ground(process, key_namespace);
    };
    return options;
  }

  // The power will fail at a file operation: of the start that now begins, or of what the broker does some time later.
  void arm() {
    if (world_.random().chance(1, 2))
      return cut_after(1 + world_.random().below(uint64_t{1} << world_.random().below(11)));
    world_.after(Duration(world_.random().between(0, kLightMax.count())),
                 [this] { cut_after(1 + world_.random().below(kServingCallsMax)); });
  }
  void cut_after(uint64_t calls) {
    broker_.node().cut_power_after(calls, [this] { cut(); });
  }
  void cut() {
    world_.happened(broker_.is_serving() ? "power_cut.while_serving" : "power_cut.while_starting");
    ++cuts_;
    broker_.crash(CrashKind::kPowerCut);
    world_.after(Duration(world_.random().between(0, kDarkMax.count())), [this] {
      broker_.boot();
      if (cuts_ < kPowerCutsPerRun - 1) arm();
    });
  }

  void stop_faults() {
    broker_.node().disk().set_faults({});
    network_.set_faults({});
  }
  bool is_settled() const { return workload_.is_finished() && broker_.is_serving(); }
  RunEnd run_until(const std::function<bool()>& done) {
    return world_.run_until([&] { return done() || !findings_.empty(); });
  }
  RunEnd wait_for_stillness() {
    Stillness stillness(kQuietTime);
    return run_until([&] {
      metadata::MetadataClient* metadata = broker_.metadata();
      return metadata != nullptr && stillness.is_reached(metadata->state(), world_.now());
    });
  }

  World world_;
  PowerCutPlan plan_;
  Findings findings_;
  SimNetwork network_{world_};
  Workload workload_{world_, network_, findings_, {kHost}, plan_.workload};
  BrokerMachine broker_;
  uint64_t cuts_ = 0;
};

}  // namespace

Outcome run_power_cuts(const RunOptions& options) { return PowerCutRun(options, 0).run(); }

Outcome run_power_cuts_on_lying_disk(const RunOptions& options) { return PowerCutRun(options, 50).run(); }

}  // namespace varve::sim
