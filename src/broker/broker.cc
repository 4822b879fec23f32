#include "broker/broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "broker/admin/admin_http.h"
#include "broker/handlers/handler_table.h"
#include "broker/server/server.h"
#include "metadata/client/bucket_identity.h"
#include "object_store/metered_store.h"
#include "object_store/retrying_store.h"
#include "storage/cache/block_cache.h"
#include "storage/fetch/fetcher.h"
#include "storage/ingest/ingest.h"
#include "storage/maintenance/garbage_collector.h"

namespace varve::broker {
namespace {

metadata::ClientConfig client_config(const BrokerWorld& world, const Settings& settings,
                                     const Server& server) {
  metadata::ClientConfig config;
  config.broker = settings.broker_id;
  config.rack = settings.rack;
  config.key_prefix = settings.key_namespace;
  config.snapshot_after_bytes = settings.snapshot_after_bytes;
  config.snapshot_after_time = world.snapshot_after_time;
  config.proposals_waiting_max = settings.limits.proposals_waiting_max;
  for (const ListenerSettings& listener : settings.all_listeners()) {
    metadata::Endpoint endpoint;
    endpoint.listener = listener.name;
    endpoint.host = listener.advertised.host;
    endpoint.port =
        listener.advertised.port != 0 ? listener.advertised.port : server.local(listener.name).port;
    config.endpoints.push_back(std::move(endpoint));
  }
  return config;
}

object_store::RetryOptions retry_options(const Settings& settings) {
  object_store::RetryOptions options;
  options.attempt_max = settings.limits.object_attempt_max;
  options.deadline_max = settings.limits.object_deadline_max;
  options.read_deadline_max = settings.limits.object_deadline_max / 2;
  // The one object that nobody ever deletes.
  options.may_write_twice = [identity = metadata::identity_key(settings.key_namespace)](
                                std::string_view key) { return key == identity; };
  return options;
}

storage::IngestConfig ingest_config(const Settings& settings, Duration default_interval) {
  storage::IngestConfig config;
  config.key_prefix = settings.key_namespace;
  config.commit_interval = settings.append_commit_interval.value_or(default_interval);
  config.early_acks = !settings.produce_sync_flush;
  config.early_flush_bytes = settings.segment_bytes;
  config.early_flush_interval = settings.flush_interval;
  return config;
}

storage::BlockCacheConfig cache_config(const Settings& settings) {
  storage::BlockCacheConfig config;
  config.bytes_max = settings.limits.cache_bytes_max;
  return config;
}

GroupConfig group_config(const Settings& settings, PlantedBugs bugs) {
  GroupConfig config;
  config.session_timeout_min = settings.group_session_timeout_min;
  config.session_timeout_max = settings.group_session_timeout_max;
  config.initial_rebalance_delay = settings.group_initial_rebalance_delay;
  config.members_max = std::min(settings.group_members_max, settings.limits.group_members_max);
  config.pending_max = settings.limits.group_members_max;
  config.member_bytes_max = settings.limits.group_member_bytes_max;
  config.groups_max = settings.limits.groups_in_memory_max;
  config.bytes_max = settings.limits.group_memory_bytes_max;
  config.groups_per_job = settings.limits.groups_per_job_max;
  config.offsets_retention = settings.offsets_retention;
  config.bugs = bugs;
  return config;
}

storage::GarbageCollectorConfig collector_config(const Settings& settings, Duration fence_interval) {
  storage::GarbageCollectorConfig config;
  config.key_prefix = settings.key_namespace;
  config.broker = settings.broker_id;
  config.fence_interval = fence_interval;
  config.look_interval = fence_interval / 30;
  config.sweep_interval = fence_interval * 12;
  return config;
}

}  // namespace

// In order of construction; destroyed in the opposite one.
struct Broker::Impl {
  Impl(BrokerWorld world_in, Settings settings_in, Logger logger_in, MetricRegistry& metrics_in,
       PlantedBugs bugs_in)
      : world(world_in),
        settings(std::move(settings_in)),
        logger(std::move(logger_in)),
        metrics(metrics_in),
        bugs(bugs_in),
        metered_store(world.store, world.runtime, metrics),
        store(metered_store, world.runtime, metrics, retry_options(settings)),
        admin(metrics, readiness, metered_store, world.log),
        http(world.runtime, admin, {}, logger.component("http")) {}

  // Everything that stands on the metadata client, which needs the bound address.
  struct Parts {
    // `server` has bound its addresses.
    Parts(Impl& impl, const Server& server);

    metadata::MetadataClient metadata;
    storage::BlockCache cache;
    storage::Ingest ingest;
    storage::Fetcher fetcher;
    FetchSessionCache fetch_sessions;
    ProducerIds producer_ids;
    GroupCoordinator groups;
    Throughput throughput;
    DecodeScratches scratches;
    runtime::TaskScope settling;
    Services services;
    HandlerTable handlers;
    std::optional<storage::GarbageCollector> collector;  // once the log is joined
  };

  using JoinResult = Result<void, metadata::StartError>;

  runtime::Task<Result<void, BrokerError>> start();
  runtime::Task<std::optional<JoinResult>> join();
  runtime::Task<> join_and_tell(runtime::Completion<std::optional<JoinResult>> done);
  runtime::Task<> stop();
  void add_gauges();

  BrokerWorld world;
  const Settings settings;
  Logger logger;
  MetricRegistry& metrics;
  PlantedBugs bugs;
  object_store::MeteredStore metered_store;
  object_store::RetryingStore store;  // what all parts use
  Readiness readiness;
  AdminHttp admin;
  runtime::http::Server http;
  // Requests reach the handlers through it, which are made after it has bound its address.
  class Gate final : public RequestHandler {
   public:
    runtime::Task<Reply> handle(RequestContext context, protocol::RequestFrame request) override {
      return handlers->handle(std::move(context), std::move(request));
    }
    HandlerTable* handlers = nullptr;
  };
  Gate gate;
  std::unique_ptr<Parts> parts;
  std::unique_ptr<Server> server;
  runtime::TaskScope starting;
  bool is_http_bound = false;
  bool is_joined = false;
};

Broker::Impl::Parts::Parts(Impl& impl, const Server& server)
    : metadata(impl.world.runtime, impl.world.log, impl.store,
               client_config(impl.world, impl.settings, server), impl.logger, impl.metrics, impl.bugs),
      cache(cache_config(impl.settings), impl.metrics),
      ingest(impl.world.runtime, metadata, impl.store, cache,
             ingest_config(impl.settings, impl.world.commit_interval), impl.settings.limits,
             impl.logger.component("ingest"), impl.metrics, impl.bugs),
      fetcher(impl.world.runtime, metadata, impl.store, cache,
              storage::FetcherConfig{.key_prefix = impl.settings.key_namespace}, impl.settings.limits,
              impl.logger.component("fetch"), impl.metrics, impl.bugs),
      fetch_sessions(impl.settings.limits, impl.world.runtime.random_seed()),
      producer_ids(impl.world.runtime, metadata),
      groups(impl.world.runtime, metadata, impl.settings.broker_id, group_config(impl.settings, impl.bugs),
             impl.logger, impl.metrics),
      throughput(impl.settings.throughput_window),
      scratches(impl.world.runtime),
      services{.runtime = impl.world.runtime,
               .settings = impl.settings,
               .authorizer = impl.world.authorizer,
               .quotas = impl.world.quotas,
               .metadata = metadata,
               .ingest = ingest,
               .fetcher = fetcher,
               .fetch_sessions = fetch_sessions,
               .producer_ids = producer_ids,
               .groups = groups,
               .throughput = throughput,
               .scratches = scratches,
               .produce_latency_ms = impl.metrics.histogram(
                   "kafscale_produce_latency_ms", "Time from a Produce request's arrival to its reply",
                   kLatencyMsBuckets),
               .settling = settling,
               .metrics = impl.metrics,
               .logger = impl.logger},
      handlers(services) {
  metadata.set_applied_listener([this](const metadata::ApplyOutcome& outcome) {
    ingest.on_applied(outcome);
    fetcher.on_applied(outcome);
    groups.on_applied(outcome);
  });
}

runtime::Task<Result<void, BrokerError>> Broker::Impl::start() {
  using Started = Result<void, BrokerError>;
  auto refuse = [](BrokerError::Code code, std::string message) {
    return Started(std::unexpected(BrokerError{code, std::move(message)}));
  };
  auto http_bound = http.listen(settings.http_address);
  if (!http_bound) {
    co_return refuse(BrokerError::Code::kAddress,
                     fmt::format("cannot listen on {} (KAFSCALE_METRICS_ADDR): {}",
                                 settings.http_address.to_string(), http_bound.error().message));
  }
  is_http_bound = true;
  http.start();
  server =
      std::make_unique<Server>(world.runtime, gate, settings.limits, logger.component("server"), metrics);
  for (const ListenerSettings& listener : settings.all_listeners()) {
    auto bound = server->listen(listener.name, listener.address);
    if (!bound) {
      co_return refuse(BrokerError::Code::kAddress,
                       fmt::format("cannot listen on {} ({}): {}", listener.address.to_string(),
                                   settings.listeners.empty() ? "KAFSCALE_BROKER_ADDR" : "KAFKA_LISTENERS",
                                   bound.error().message));
    }
  }
  parts = std::make_unique<Parts>(*this, *server);
  gate.handlers = &parts->handlers;
  std::optional<JoinResult> joined = co_await join();
  if (!joined) {
    std::string message =
        fmt::format("the metadata log was not joined within {} s (KAFSCALE_STARTUP_TIMEOUT_SEC)",
                    std::chrono::duration_cast<std::chrono::seconds>(settings.startup_timeout).count());
    if (auto problem = store.last_problem()) message += "; the object store fails: " + *problem;
    co_return refuse(BrokerError::Code::kTimeout, std::move(message));
  }
  if (!*joined) co_return refuse(BrokerError::Code::kMetadata, std::move(joined->error().message));
  is_joined = true;
  parts->collector.emplace(world.runtime, parts->metadata, store,
                           collector_config(settings, world.fence_interval), logger, metrics, bugs);
  parts->collector->start();
  co_await parts->groups.start();
  add_gauges();
  admin.set_metadata(&parts->metadata);
  server->start();
  readiness.set(Readiness::Phase::kServing);
  co_return Started();
}

runtime::Task<> Broker::Impl::join_and_tell(runtime::Completion<std::optional<JoinResult>> done) {
  JoinResult result = co_await parts->metadata.start();
  done.set(std::move(result));
}

// nullopt: not in time.
runtime::Task<std::optional<Broker::Impl::JoinResult>> Broker::Impl::join() {
  runtime::Completion<std::optional<JoinResult>> done;
  starting.spawn(world.runtime.io(0), "join the log", join_and_tell(done));
  std::optional<JoinResult> too_late;
  auto result = co_await runtime::wait_until(done, world.runtime.now() + settings.startup_timeout, too_late);
  co_await starting.close();
  co_return result;
}

void Broker::Impl::add_gauges() {
  Throughput& throughput = parts->throughput;
  runtime::Runtime& runtime = world.runtime;
  metrics.gauge_from("kafscale_produce_rps",
                     "Messages produced a second, over KAFSCALE_THROUGHPUT_WINDOW_SEC",
                     [&] { return throughput.produced.per_second(runtime.now()); });
  metrics.gauge_from("kafscale_fetch_rps", "Messages fetched a second, over KAFSCALE_THROUGHPUT_WINDOW_SEC",
                     [&] { return throughput.fetched.per_second(runtime.now()); });
  metrics.gauge_from("kafscale_broker_uptime_seconds", "Time since the broker began to serve",
                     [&runtime, since = runtime.now()] {
                       return std::chrono::duration<double>(runtime.now() - since).count();
                     });
  metadata::MetadataClient& metadata = parts->metadata;
  metrics.gauge_from(
      "varve_metadata_progress_seconds", "Time since the last completed sync with the metadata log began",
      [&metadata] { return std::chrono::duration<double>(metadata.since_progress()).count(); });
  FetchSessionCache& sessions = parts->fetch_sessions;
  metrics.gauge_from("varve_fetch_sessions", "Fetch sessions remembered",
                     [&sessions] { return static_cast<double>(sessions.session_count()); });
}

// Each part stops before those it waits for.
runtime::Task<> Broker::Impl::stop() {
  readiness.set(Readiness::Phase::kStopping);
  MonotonicTime deadline = world.runtime.now() + settings.shutdown_timeout;
  if (server) server->begin_stop();
  if (is_joined) {
    // Members who wait go and look for another coordinator.
    co_await parts->groups.stop();
    co_await parts->collector->stop();
    // What waits in ingest is what the last requests wait for.
    bool is_drained = co_await parts->ingest.drain(deadline);
    if (!is_drained) logger.warn("stopping with batches that are not stored: their producers were told so");
    co_await parts->ingest.stop();
    co_await parts->fetcher.stop();
  }
  if (server) co_await server->stop(deadline);
  if (is_joined) {
    co_await parts->settling.close();
    co_await parts->metadata.stop();
  }
  if (is_http_bound) co_await http.stop();
}

Broker::Broker(BrokerWorld world, Settings settings, Logger logger, MetricRegistry& metrics, PlantedBugs bugs)
    : impl_(std::make_unique<Impl>(world, std::move(settings), std::move(logger), metrics, bugs)) {}

Broker::~Broker() = default;

runtime::Task<Result<void, BrokerError>> Broker::start() { return impl_->start(); }
runtime::Task<> Broker::stop() { return impl_->stop(); }

runtime::Completion<metadata::FatalError> Broker::fatal() const {
  return impl_->parts ? impl_->parts->metadata.fatal() : runtime::Completion<metadata::FatalError>();
}

const runtime::Address& Broker::kafka_address() const {
  return kafka_address(impl_->settings.all_listeners().front().name);
}
const runtime::Address& Broker::kafka_address(std::string_view listener) const {
  return impl_->server->local(listener);
}
const runtime::Address& Broker::http_address() const { return impl_->http.local(); }
metadata::MetadataClient* Broker::metadata() { return impl_->parts ? &impl_->parts->metadata : nullptr; }

}  // namespace varve::broker
