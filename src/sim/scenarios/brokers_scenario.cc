#include "sim/scenarios/brokers_scenario.h"

#include <algorithm>
#include <memory>

#include "sim/checkers/log_audit.h"
#include "sim/checkers/state_samples.h"
#include "sim/checkers/stillness.h"
#include "sim/checkers/store_watch.h"
#include "sim/scenarios/brokers_plan.h"
#include "sim/scenarios/disturbances.h"
#include "sim/workload/broker_machine.h"
#include "sim/workload/foreign_process.h"
#include "sim/workload/stray_writer.h"
#include "sim/workload/workload.h"

namespace varve::sim {
namespace {

constexpr size_t kBrokers = 3;
constexpr Duration kTimeToFinish = 8min;
// Late requests land within that.
constexpr Duration kLateMax = 15s;
constexpr Duration kQuietTime = kLateMax + 5s;
constexpr ServiceTimes kStoreTimes = {.slow_max = 4s, .timeout_max = 3s, .late_max = kLateMax};
constexpr ServiceTimes kLogTimes = {.slow_max = 3s, .timeout_max = 3s, .late_max = kLateMax};
constexpr Duration kSampleInterval = 500ms;
constexpr size_t kStrayEntries = 40;
// Time enough for a broker to end and to start again several times.
constexpr Duration kTimeToStart = 20s;

std::string host_of(int32_t id) { return fmt::format("broker{}", id); }

std::vector<std::string> broker_hosts() {
  std::vector<std::string> hosts;
  for (size_t i = 0; i < kBrokers; ++i) hosts.push_back(host_of(static_cast<int32_t>(i)));
  return hosts;
}

class BrokersRun {
 public:
  explicit BrokersRun(const RunOptions& options)
      : world_({.seed = options.seed, .time_max = kTimeToFinish, .trace = options.trace}),
        plan_(BrokersPlan::draw(world_.random())),
        bugs_(options.bugs) {
    for (size_t i = 0; i < kBrokers; ++i) brokers_.push_back(make_broker(static_cast<int32_t>(i)));
    make_troubles();
    audit_.watch_groups(&workload_.groups().watch());
  }

  Outcome run() {
    workload_.start();
    start_troubles();
    RunEnd end = run_for(plan_.busy_time);
    stop_troubles();
    if (end == RunEnd::kDone) end = run_until([this] { return is_settled(); });
    // What nobody waits for (acks=0, early acknowledgements, late requests) still comes in.
    if (end == RunEnd::kDone) end = wait_for_stillness();
    if (end == RunEnd::kDone) end = change_owner();
    if (end == RunEnd::kDone) workload_.read_all();
    if (end == RunEnd::kDone) end = run_until([this] { return workload_.has_read_all(); });
    if (end == RunEnd::kDone) check_end();
    if (end == RunEnd::kDone && plan_.collects()) end = wait_for_collection();
    check_always();
    std::string stuck;
    if (end != RunEnd::kDone) stuck = describe();
    workload_.stop();
    if (end == RunEnd::kDone && plan_.rolls_back && findings_.empty()) end = roll_back();
    Outcome outcome = make_outcome(world_, findings_, end);
    if (outcome.verdict == Verdict::kStuck) outcome.message += stuck;
    brokers_.clear();
    return outcome;
  }

 private:
  std::unique_ptr<BrokerMachine> make_broker(int32_t id) {
    BrokerMachineOptions options;
    options.settings = simulated_settings(BrokerId(id), host_of(id));
    options.settings.produce_sync_flush = !plan_.workload.has_early_acks;
    options.settings.limits = plan_.limits;
    options.commit_interval = plan_.commit_interval;
    options.fence_interval = plan_.fence_interval;
    options.settings.snapshot_after_bytes = plan_.snapshot_after_bytes;
    options.snapshot_after_time = plan_.snapshot_after_time;
    options.bugs = bugs_;
    options.node.host = host_of(id);
    options.node.clock_offset =
        Duration(world_.random().between(Duration(-60s).count(), Duration(60s).count()));
    options.make_ground = [this](Process& process) { return make_shared_ground(process, log_, store_); };
    return std::make_unique<BrokerMachine>(world_, network_, std::move(options));
  }
  void make_troubles() {
    std::vector<NemesisVictim> victims;
    std::vector<BrokerMachine*> brokers;
    for (auto& broker : brokers_) {
      victims.push_back(broker->victim());
      brokers.push_back(broker.get());
    }
    nemesis_ = std::make_unique<Nemesis>(world_, plan_.faults.nemesis, std::move(victims), network_,
                                         std::vector<Service*>{&store_, &log_});
    disturbances_ = std::make_unique<Disturbances>(world_, std::move(brokers), log_, store_);
    foreigner_ = std::make_unique<ForeignProcess>(world_, store_, broker::default_settings().key_namespace);
  }
  void start_troubles() {
    set_faults(plan_.faults);
    nemesis_->start();
    disturbances_->start(plan_.disturbances, plan_.busy_time);
    if (plan_.has_stray_writer) {
      stray_ = std::make_unique<StrayWriter>(world_, log_, audit_);
      stray_->start(kStrayEntries);
    }
  }
  void stop_troubles() {
    workload_.end();
    foreigner_->stop();
    disturbances_->stop();
    nemesis_->stop();
    set_faults({});
  }
  void set_faults(const FaultPlan& faults) {
    store_.set_faults(faults.store);
    log_.set_faults(faults.log);
    network_.set_faults(faults.network);
  }

  RunEnd run_until(const std::function<bool()>& done) {
    return world_.run_until([&] {
      look();
      return done() || !findings_.empty();
    });
  }
  // Peaks count, so at each step (invariant 11).
  void check_memory(const std::string& host, std::string_view what, double bytes, size_t bytes_max) {
    findings_.require(bytes <= static_cast<double>(bytes_max), "{} holds {} bytes of {}, and {} are allowed",
                      host, bytes, what, bytes_max);
  }
  // Before each step.
  void look() {
    for (auto& broker : brokers_) {
      check_memory(broker->host(), "batches", broker->ingest_memory_bytes(),
                   plan_.limits.ingest_memory_bytes_max);
      check_memory(broker->host(), "cached objects", broker->cache_bytes(), plan_.limits.cache_bytes_max);
    }
    if (world_.now() < next_sample_ || is_rolled_back_) return;
    next_sample_ = world_.now() + kSampleInterval;
    bool is_serving = false;
    for (auto& broker : brokers_) {
      metadata::MetadataClient* client = broker->metadata();
      if (client == nullptr) continue;
      is_serving = true;
      samples_.take(broker->host(), client->state());
    }
    audit_.catch_up();
    findings_.require(log_.trim_mark() <= audit_.state().trimmable(),
                      "the log is trimmed up to {}, and the oldest retained snapshot allows {}",
                      log_.trim_mark(), audit_.state().trimmable());
    if (is_serving && !has_foreigner_ && !workload_.is_over()) {
      has_foreigner_ = true;
      foreigner_->start(plan_.foreign_gap);
    }
  }
  RunEnd run_for(Duration span) {
    MonotonicTime end = world_.now() + span;
    return run_until([this, end] { return world_.now() >= end; });
  }

  bool is_settled() const {
    return workload_.is_finished() &&
           std::ranges::all_of(brokers_, [](const auto& broker) { return broker->is_serving(); });
  }

  // A group's owner dies and comes back, and nothing else happens: its members go on in their generation.
  RunEnd change_owner() {
    Groups& groups = workload_.groups();
    RunEnd end = run_until([&] { return groups.is_settled(); });
    std::optional<BrokerId> owner = audit_.state().group_owner(plan_.workload.groups.front().name);
    if (end != RunEnd::kDone || !owner || *owner == kStrayBroker) return end;
    Groups::Generations before = groups.generations();
    BrokerMachine& machine = *brokers_.at(static_cast<size_t>(owner->value()));
    Duration pause(world_.random().between(Duration(1s).count(), Duration(25s).count()));
    MonotonicTime back_at = world_.now() + pause;
    world_.after(0ms, [&machine] { machine.crash(CrashKind::kKilled); });
    world_.after(pause, [&machine] {
      // A disturbance of before may have brought it back already.
      if (!machine.node().is_up()) machine.boot();
    });
    end = run_until(
        [&] { return world_.now() > back_at && is_settled() && groups.has_committed_since(back_at + 5s); });
    if (end == RunEnd::kDone) groups.check_same(before);
    world_.happened("group.owner_changed");
    return end;
  }

  RunEnd wait_for_stillness() {
    Stillness stillness(kQuietTime);
    return run_until([&] {
      audit_.catch_up();
      return stillness.is_reached(audit_.state(), world_.now());
    });
  }

  void check_end() {
    workload_.check();
    for (const std::string& object : watch_.missing_objects()) {
      findings_.add(fmt::format("object {} is referred to and not in the store", object));
    }
  }
  // Every dead object disappears, once it may.
  RunEnd wait_for_collection() {
    MonotonicTime next_look;
    return run_until([this, &next_look] {
      if (world_.now() < next_look) return false;
      next_look = world_.now() + 1s;
      return watch_.dead_objects().empty();
    });
  }
  // Whatever the run came to.
  void check_always() {
    workload_.check_order();
    audit_.catch_up();
    metadata::State state = samples_.check_replay(log_, bugs_);
    samples_.check_snapshots(log_, store_, state, bugs_);
    for (const auto& [name, count] : audit_.state().refusal_counts()) {
      if (count > 0) world_.happened("apply." + name);
    }
  }

  // An older copy of the log under a newer snapshot: whoever runs ends, and nobody starts.
  RunEnd roll_back() {
    const auto& snapshots = audit_.state().snapshots();
    if (snapshots.empty()) return RunEnd::kDone;
    std::vector<LogPosition> older;
    for (const SimMetadataLog::Record& record : log_.records()) {
      if (record.position < snapshots.back().position) older.push_back(record.position);
    }
    is_rolled_back_ = true;
    log_.roll_back(older[world_.random().below(older.size())]);
    RunEnd end = run_until([this] {
      return std::ranges::none_of(brokers_, [](const auto& broker) { return broker->is_serving(); });
    });
    if (end != RunEnd::kDone) findings_.add("a broker serves on an older copy of the log");
    MonotonicTime until = world_.now() + kTimeToStart;
    return run_until([this, until] {
      for (auto& broker : brokers_) {
        findings_.require(!broker->is_serving(), "{} started on an older copy of the log", broker->host());
      }
      return world_.now() >= until;
    });
  }

  std::string describe() {
    std::string text;
    for (const auto& broker : brokers_) {
      if (!broker->is_serving())
        text += fmt::format("\n  {} does not serve: {}", broker->host(), broker->problem());
    }
    std::vector<std::string> dead = watch_.dead_objects();
    if (plan_.collects() && !dead.empty()) text += fmt::format("\n  {} is not deleted", dead.front());
    return text + workload_.describe();
  }

  World world_;
  BrokersPlan plan_;
  PlantedBugs bugs_;
  Findings findings_;
  SimNetwork network_{world_};
  SimObjectStore store_{world_, kStoreTimes};
  SimMetadataLog log_{world_, kLogTimes};
  LogAudit audit_{log_, bugs_, findings_};
  StoreWatch watch_{world_, store_, audit_, broker::default_settings().key_namespace, findings_};
  StateSamples samples_{findings_};
  MonotonicTime next_sample_;
  Workload workload_{
      world_, network_, findings_, broker_hosts(), plan_.workload, [this]() -> const metadata::State& {
        audit_.catch_up();
        return audit_.state();
      }};
  std::vector<std::unique_ptr<BrokerMachine>> brokers_;
  std::unique_ptr<Nemesis> nemesis_;
  std::unique_ptr<Disturbances> disturbances_;
  std::unique_ptr<ForeignProcess> foreigner_;
  std::unique_ptr<StrayWriter> stray_;
  bool has_foreigner_ = false;
  bool is_rolled_back_ = false;
};

}  // namespace

Outcome run_brokers(const RunOptions& options) { return BrokersRun(options).run(); }

}  // namespace varve::sim
