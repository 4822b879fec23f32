#include "sim/storage/storage_scenario.h"

#include <algorithm>

#include "metadata/state/object_key.h"
#include "runtime/task_scope.h"
#include "sim/nemesis.h"
#include "sim/storage/storage_producers.h"

namespace varve::sim {
namespace {

using runtime::Task;

constexpr size_t kBrokers = 3;
constexpr Duration kFaultyTime = 90s;
constexpr Duration kTimeToFinish = std::chrono::hours(3);

StorageBrokerOptions broker_options(Random& random, const PlantedBugs& bugs) {
  StorageBrokerOptions options;
  options.bugs = bugs;
  options.limits = Limits::tiny();
  options.limits.chain_batches_waiting_max = 6;
  options.limits.uploads_in_flight_max = 4;
  options.limits.ingest_memory_bytes_max = 24 * kKiB;
  // So short that uploads fail for good in many a run.
  options.limits.object_attempt_max = 500ms;
  options.limits.object_deadline_max = 3s;
  options.ingest.commit_interval = random.chance(1, 2) ? 250ms : 5ms;
  options.ingest.early_acks = random.chance(1, 4);
  options.snapshot_after_bytes = 20'000;
  options.snapshot_after_time = 10s;
  options.collector = {
      .look_interval = 1s,
      .fence_interval = Duration(random.between(Duration(1s).count(), Duration(20s).count())),
      .sweep_interval = 20s,
      .keys_per_request = static_cast<size_t>(random.between(1, 10))};
  return options;
}

class StorageRun {
 public:
  explicit StorageRun(const RunOptions& options)
      : world_({.seed = options.seed, .time_max = kFaultyTime + kTimeToFinish, .trace = options.trace}),
        plan_(FaultPlan::draw(world_.random())) {
    StorageBrokerOptions broker = broker_options(world_.random(), options.bugs);
    std::vector<NemesisVictim> victims;
    std::vector<StorageBroker*> all;
    for (size_t i = 0; i < kBrokers; ++i) {
      nodes_.push_back(
          std::make_unique<Node>(world_, NodeOptions{.host = fmt::format("broker{}", i + 1)}, &network_));
      broker.id = BrokerId(static_cast<int32_t>(i) + 1);
      brokers_.push_back(std::make_unique<StorageBroker>(*nodes_[i], store_, log_, broker));
      StorageBroker* made = brokers_.back().get();
      all.push_back(made);
      victims.push_back({.node = nodes_[i].get(),
                         .crash = [this, made](CrashKind kind) { crash(*made, kind); },
                         .boot = [this, made] { boot(*made); }});
    }
    cluster_ = std::make_unique<StorageCluster>(world_, all);
    nemesis_ = std::make_unique<Nemesis>(world_, plan_.nemesis, std::move(victims), network_,
                                         std::vector<Service*>{&store_, &log_});
    for (size_t i = 0; i < 2; ++i) {
      plain_.push_back(std::make_unique<PlainProducer>(*cluster_, ledger_, i, 120));
      idempotent_.push_back(std::make_unique<IdempotentProducer>(*cluster_, ledger_, i + 2, 60));
    }
  }

  Outcome run() {
    RunEnd end = prepare();
    if (end == RunEnd::kDone) end = run_with_faults();
    if (end == RunEnd::kDone) end = finish();
    for (auto& broker : brokers_) {
      if (broker->is_up()) crash(*broker, CrashKind::kKilled);
    }
    clients_.crash(CrashKind::kKilled);
    return make_outcome(world_, findings_, end);
  }

 private:
  runtime::Executor& client_io() { return clients_.process().io(0); }

  void boot(StorageBroker& broker) {
    if (!broker.node().is_up()) broker.node().boot();
    broker.boot();
  }
  void crash(StorageBroker& broker, CrashKind kind) {
    harvest(broker);
    broker.crash(kind);
  }
  // What the metrics of a life of a broker tell about the run.
  void harvest(StorageBroker& broker) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTold = {{
        {"varve_objects_deleted_total", "collector.deleted_objects"},
        {"varve_orphans_deleted_total", "collector.swept_orphans"},
        {"varve_corrupt_reads_total", "fetch.corrupt_read"},
        {"varve_ingest_held_batches_total", "ingest.held_batch"},
        {"varve_wal_objects_fenced_total", "ingest.object_fenced"},
        {"varve_wal_uploads_failed_total", "ingest.upload_failed"},
    }};
    for (const auto& [counter, happening] : kTold) {
      if (broker.counter(counter) > 0) world_.happened(happening);
    }
    if (broker.options().ingest.early_acks) world_.happened("ingest.early_acknowledged");
  }

  RunEnd prepare() {
    for (auto& broker : brokers_) broker->boot();
    watch();
    RunEnd end = world_.run_until([this] {
      return std::all_of(brokers_.begin(), brokers_.end(),
                         [](const auto& broker) { return broker->is_serving(); });
    });
    if (end != RunEnd::kDone) return end;
    auto created = brokers_[0]->propose(
        metadata::CreateTopic{.id = world_.random().uuid(), .name = "topic", .partitions = 3, .configs = {}});
    end = world_.run_until([&] {
      return created.is_set() && std::all_of(brokers_.begin(), brokers_.end(), [](const auto& broker) {
               return broker->client().image()->find_topic("topic") != nullptr;
             });
    });
    if (end != RunEnd::kDone) return end;
    cluster_->partitions = brokers_[0]->client().image()->find_topic("topic")->partitions;
    put_foreign_objects();
    return RunEnd::kDone;
  }

  // Of another log in the same namespace, of a nonce that this log never registered, and of nobody's making.
  void put_foreign_objects() {
    metadata::WalObjectName other_log{.log_id = world_.random().uuid(),
                                      .nonce = brokers_[0]->client().nonce(),
                                      .epoch = FenceEpoch(0),
                                      .number = ObjectNumber(1)};
    metadata::WalObjectName other_nonce = other_log;
    other_nonce.log_id = brokers_[0]->client().identity().id;
    other_nonce.nonce = Nonce(world_.random().next());
    foreign_ = {metadata::wal_key("ns", other_log), metadata::wal_key("ns", other_nonce),
                "ns/_wal/00/readme"};
    for (const std::string& key : foreign_) store_.foreign_put(key, Slice::copy_of(as_bytes("foreign")));
  }

  RunEnd run_with_faults() {
    for (auto& producer : plain_) scope_.spawn(client_io(), "plain", producer->run());
    for (auto& producer : idempotent_) scope_.spawn(client_io(), "idempotent", producer->run());
    scope_.spawn(client_io(), "consumer", consume(*cluster_, ledger_));
    scope_.spawn(client_io(), "topics", make_brief_topics(*cluster_, ledger_));
    set_faults(plan_);
    nemesis_->start();
    RunEnd end = world_.run_for(kFaultyTime);
    nemesis_->stop();
    set_faults(FaultPlan{});
    return end;
  }

  RunEnd finish() {
    RunEnd end = world_.run_until([this] {
      auto is_done = [](const auto& one) { return one->is_done(); };
      return std::all_of(plain_.begin(), plain_.end(), is_done) &&
             std::all_of(idempotent_.begin(), idempotent_.end(), is_done);
    });
    if (end != RunEnd::kDone) return end;
    cluster_->is_over = true;
    // The patience of the last waiting client, and time for early-acknowledged batches to be stored.
    end = world_.run_for(5min);
    if (end == RunEnd::kDone) end = world_.run_until([this] { return scope_.size() == 0 && all_serve(); });
    if (end != RunEnd::kDone) return end;
    bool is_read = false;
    scope_.spawn(client_io(), "last reader", read_everything(&is_read));
    end = world_.run_until([&] { return is_read || !findings_.empty(); });
    if (end != RunEnd::kDone || !findings_.empty()) return end;
    end = world_.run_until([this] { return is_clean(); });
    for (const std::string& key : foreign_) {
      findings_.require(store_.objects().contains(key), "the foreign object {} was deleted", key);
    }
    return end;
  }

  bool all_serve() const {
    return std::all_of(brokers_.begin(), brokers_.end(),
                       [](const auto& broker) { return broker->is_serving(); });
  }

  // Reads every partition through every broker, from its start to its end.
  Task<> read_everything(bool* is_read) {
    for (auto& broker : brokers_) {
      for (PartitionHandle partition : cluster_->partitions) {
        std::vector<StoredBatch> all;
        Offset next(0);
        Offset end(-1);
        for (int tries = 0; next != end && tries < 1'000; ++tries) {
          storage::FetchRequest request{.partitions = {{partition, next, 10'000}}};
          auto fetched = co_await broker->fetch(request).wait();
          findings_.require(fetched[0].error == storage::FetchErrc::kNone,
                            "reading {} from {} in the end: {}", partition, next,
                            storage::fetch_error_name(fetched[0].error));
          if (fetched[0].error != storage::FetchErrc::kNone) co_return;
          end = fetched[0].high_watermark;
          for (const StoredBatch& batch : ledger_.read(partition, next, fetched[0])) {
            all.push_back(batch);
            next = batch.base_offset.plus(batch.records);
          }
        }
        ledger_.check_partition(partition, all, end);
      }
    }
    for (auto& producer : plain_) {
      for (const PlainProducer::Promise& promise : producer->promises) {
        bool lives_on = promise.broker->process().life() == promise.life;
        bool stays = std::count(cluster_->partitions.begin(), cluster_->partitions.end(),
                                promise.batch->partition) > 0;
        if (lives_on && stays) ledger_.promised(*promise.batch);
      }
    }
    ledger_.check_promises();
    *is_read = true;
  }

  // Every dead object is gone: what is left of this log is what the state refers to.
  bool is_clean() {
    if (!brokers_[0]->is_serving()) return false;
    const metadata::State& state = brokers_[0]->client().state();
    if (state.pending_deletions() > 0) return false;
    for (const auto& [key, object] : store_.objects()) {
      auto name = metadata::parse_wal_key("ns", key);
      if (!name || std::count(foreign_.begin(), foreign_.end(), key) > 0) continue;
      auto incarnation = state.incarnation_of(name->nonce);
      if (!incarnation || !state.knows_object({*incarnation, name->number})) return false;
    }
    return true;
  }

  // Once in a while: brokers that had to end are started again, and nobody is above its memory budget.
  void watch() {
    for (auto& broker : brokers_) {
      if (broker->has_failed()) {
        crash(*broker, CrashKind::kKilled);
        boot(*broker);
      }
      if (!broker->is_up()) continue;
      double bytes = broker->metrics().gauge("varve_ingest_memory_bytes", "").value();
      findings_.require(bytes <= static_cast<double>(broker->options().limits.ingest_memory_bytes_max),
                        "{} holds {} bytes of batches", broker->node().host(), bytes);
    }
    world_.after(100ms, [this] { watch(); });
  }

  void set_faults(const FaultPlan& plan) {
    store_.set_faults(plan.store);
    log_.set_faults(plan.log);
    network_.set_faults(plan.network);
  }

  World world_;
  Findings findings_;
  StorageLedger ledger_{findings_};
  FaultPlan plan_;
  SimNetwork network_{world_};
  SimObjectStore store_{world_};
  SimMetadataLog log_{world_};
  Node clients_{world_, {.host = "clients"}, &network_};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<StorageBroker>> brokers_;
  std::unique_ptr<StorageCluster> cluster_;
  std::unique_ptr<Nemesis> nemesis_;
  std::vector<std::string> foreign_;
  std::vector<std::unique_ptr<PlainProducer>> plain_;
  std::vector<std::unique_ptr<IdempotentProducer>> idempotent_;
  runtime::TaskScope scope_;
};

}  // namespace

Outcome run_storage(const RunOptions& options) { return StorageRun(options).run(); }

}  // namespace varve::sim
