#include "sim/scenarios/brokers_scenario.h"

#include <algorithm>
#include <memory>

#include "sim/checkers/delivery.h"
#include "sim/checkers/log_audit.h"
#include "sim/checkers/state_samples.h"
#include "sim/checkers/store_watch.h"
#include "sim/scenarios/brokers_plan.h"
#include "sim/scenarios/disturbances.h"
#include "sim/workload/broker_machine.h"
#include "sim/workload/foreign_process.h"
#include "sim/workload/full_reader.h"
#include "sim/workload/stray_writer.h"
#include "sim/workload/witness.h"

namespace varve::sim {
namespace {

constexpr size_t kBrokers = 3;
constexpr size_t kClientNodes = 3;
constexpr Duration kTimeToFinish = 20min;
// Late requests land within that.
constexpr Duration kLateMax = 15s;
constexpr Duration kQuietTime = kLateMax + 5s;
constexpr ServiceTimes kStoreTimes = {.slow_max = 4s, .timeout_max = 3s, .late_max = kLateMax};
constexpr ServiceTimes kLogTimes = {.slow_max = 3s, .timeout_max = 3s, .late_max = kLateMax};
constexpr Duration kSampleInterval = 500ms;
constexpr size_t kStrayEntries = 40;

class BrokersRun {
 public:
  explicit BrokersRun(const RunOptions& options)
      : world_({.seed = options.seed, .time_max = kTimeToFinish, .trace = options.trace}),
        plan_(BrokersPlan::draw(world_.random())),
        bugs_(options.bugs) {
    for (size_t i = 0; i < kBrokers; ++i) context_.hosts.push_back(fmt::format("broker{}", i));
    for (size_t i = 0; i < kClientNodes; ++i) {
      client_nodes_.push_back(std::make_unique<Node>(
          world_, NodeOptions{.host = fmt::format("client{}", i), .io_count = 1}, &network_));
    }
    for (size_t i = 0; i < kBrokers; ++i) brokers_.push_back(make_broker(static_cast<int32_t>(i)));
    admin_ = std::make_unique<Admin>(context_, next_client(), plan_.topics);
    witness_ = std::make_unique<Witness>(context_, next_client(), 200ms);
    for (const auto& producer : plan_.producers) {
      producers_.push_back(std::make_unique<Producer>(context_, next_client(), producer));
    }
    for (const auto& consumer : plan_.consumers) {
      consumers_.push_back(std::make_unique<Consumer>(context_, next_client(), consumer));
    }
    make_troubles();
  }

  Outcome run() {
    admin_->start();
    witness_->start();
    for (auto& producer : producers_) producer->start();
    for (auto& consumer : consumers_) consumer->start();
    start_troubles();
    RunEnd end = run_for(plan_.busy_time);
    stop_troubles();
    if (end == RunEnd::kDone) end = run_until([this] { return is_settled(); });
    // What nobody waits for (acks=0, early acknowledgements, late requests) still comes in.
    if (end == RunEnd::kDone) end = run_for(kQuietTime);
    if (end == RunEnd::kDone) end = read_all();
    if (end == RunEnd::kDone) check_end();
    if (end == RunEnd::kDone && plan_.collects()) end = wait_for_collection();
    check_always();
    Outcome outcome = make_outcome(world_, findings_, end);
    if (outcome.verdict == Verdict::kStuck) outcome.message += describe();
    stop_clients();
    return outcome;
  }

 private:
  std::unique_ptr<BrokerMachine> make_broker(int32_t id) {
    BrokerMachineOptions options;
    options.settings = broker::default_settings();
    options.settings.broker_id = BrokerId(id);
    options.settings.kafka_address = {"", kKafkaPort};
    options.settings.http_address = {"", 9093};
    options.settings.advertised = {fmt::format("broker{}", id), 0};
    options.settings.allow_admin_apis = true;
    options.settings.auto_create_topics = false;
    options.settings.produce_sync_flush = !plan_.early_acks;
    options.settings.limits = plan_.limits;
    options.commit_interval = plan_.commit_interval;
    options.fence_interval = plan_.fence_interval;
    options.snapshot_after_bytes = plan_.snapshot_after_bytes;
    options.snapshot_after_time = plan_.snapshot_after_time;
    options.bugs = bugs_;
    options.node.host = context_.hosts[static_cast<size_t>(id)];
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
    disturbances_ = std::make_unique<Disturbances>(world_, std::move(brokers));
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
    context_.is_over = true;
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

  Process& next_client() { return client_nodes_[next_client_++ % client_nodes_.size()]->process(); }

  RunEnd run_until(const std::function<bool()>& done) {
    return world_.run_until([&] {
      look();
      return done() || !findings_.empty();
    });
  }
  // Before each step.
  void look() {
    for (auto& broker : brokers_) {
      double bytes = broker->ingest_memory_bytes();
      findings_.require(bytes <= static_cast<double>(plan_.limits.ingest_memory_bytes_max),
                        "{} holds {} bytes of batches, and {} are allowed", broker->host(), bytes,
                        plan_.limits.ingest_memory_bytes_max);
    }
    if (world_.now() < next_sample_) return;
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
    if (is_serving && !has_foreigner_ && !context_.is_over) {
      has_foreigner_ = true;
      foreigner_->start(plan_.foreign_gap);
    }
  }
  RunEnd run_for(Duration span) {
    MonotonicTime end = world_.now() + span;
    return run_until([this, end] { return world_.now() >= end; });
  }

  bool is_settled() const {
    return std::ranges::all_of(brokers_, [](const auto& broker) { return broker->is_serving(); }) &&
           admin_->is_finished() &&
           std::ranges::all_of(producers_, [](const auto& producer) { return producer->is_finished(); });
  }

  // From every broker, and the consumers too have to come to the end.
  RunEnd read_all() {
    for (const std::string& host : context_.hosts) {
      readers_.push_back(std::make_unique<FullReader>(context_, next_client(), host));
      readers_.back()->start();
    }
    return run_until([this] {
      return std::ranges::all_of(readers_, [](const auto& reader) { return reader->is_finished(); }) &&
             std::ranges::all_of(consumers_,
                                 [this](const auto& consumer) { return has_read_all(*consumer); });
    });
  }
  bool has_read_all(const Consumer& consumer) const {
    const auto& extents = readers_.front()->extents();
    return std::ranges::all_of(consumer.positions(), [&](const auto& entry) {
      auto extent = extents.find(entry.first);
      return extent == extents.end() || entry.second >= extent->second.end;
    });
  }

  void check_end() {
    BrokerExtents extents;
    for (const auto& reader : readers_) {
      for (const auto& [key, extent] : reader->extents()) {
        extents[reader->host()][key] = {extent.log_start, extent.end};
      }
    }
    check_delivery(history_, topics_, extents, findings_);
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
    check_order(history_, findings_);
    audit_.catch_up();
    metadata::State state = samples_.check_replay(log_, bugs_);
    samples_.check_snapshot(log_, store_, state, bugs_);
    for (const auto& [name, count] : audit_.state().refusal_counts()) {
      if (count > 0) world_.happened("apply." + name);
    }
  }

  std::string describe() {
    std::string text;
    for (const auto& broker : brokers_) {
      if (!broker->is_serving())
        text += fmt::format("\n  {} does not serve: {}", broker->host(), broker->problem());
    }
    for (const auto& producer : producers_) {
      if (!producer->is_finished()) text += "\n  " + producer->describe();
    }
    if (!admin_->is_finished()) text += "\n  a topic is half made or half deleted";
    for (const auto& reader : readers_) {
      if (!reader->is_finished()) text += fmt::format("\n  {} cannot be read", reader->host());
    }
    std::vector<std::string> dead = watch_.dead_objects();
    if (plan_.collects() && !dead.empty()) text += fmt::format("\n  {} is not deleted", dead.front());
    if (readers_.empty() || !readers_.front()->is_finished()) return text;
    for (const auto& consumer : consumers_) {
      if (!has_read_all(*consumer)) text += fmt::format("\n  {} has not read all", consumer->name());
    }
    return text;
  }

  void stop_clients() {
    for (auto& node : client_nodes_) node->crash(CrashKind::kKilled);
    brokers_.clear();
  }

  World world_;
  BrokersPlan plan_;
  PlantedBugs bugs_;
  Findings findings_;
  TopicBook topics_{world_, findings_};
  History history_{world_, topics_, findings_};
  WorkloadContext context_{world_, findings_, topics_, history_, {}};
  SimNetwork network_{world_};
  SimObjectStore store_{world_, kStoreTimes};
  SimMetadataLog log_{world_, kLogTimes};
  LogAudit audit_{log_, bugs_, findings_};
  StoreWatch watch_{world_, store_, audit_, broker::default_settings().key_namespace, findings_};
  StateSamples samples_{findings_};
  MonotonicTime next_sample_;
  std::vector<std::unique_ptr<Node>> client_nodes_;
  size_t next_client_ = 0;
  std::vector<std::unique_ptr<BrokerMachine>> brokers_;
  std::unique_ptr<Admin> admin_;
  std::unique_ptr<Witness> witness_;
  std::vector<std::unique_ptr<Producer>> producers_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::vector<std::unique_ptr<FullReader>> readers_;
  std::unique_ptr<Nemesis> nemesis_;
  std::unique_ptr<Disturbances> disturbances_;
  std::unique_ptr<ForeignProcess> foreigner_;
  std::unique_ptr<StrayWriter> stray_;
  bool has_foreigner_ = false;
};

}  // namespace

Outcome run_brokers(const RunOptions& options) { return BrokersRun(options).run(); }

}  // namespace varve::sim
