#include "storage/ingest/ingest.h"

#include <atomic>

#include "metadata/state/object_key.h"
#include "object_store/backoff.h"
#include "storage/ingest/ingest_buffer.h"

namespace varve::storage {
namespace {

static_assert(Limits().commit_bytes_max <= metadata::kMaxEntryBytes / 2,
              "a proposal leaves no room for others");

IngestBufferConfig buffer_config(const IngestConfig& config, const Limits& limits) {
  IngestBufferConfig result;
  result.seal = {.interval = config.commit_interval,
                 .bytes_max = limits.ingest_buffer_bytes_max,
                 .batches_max = limits.wal_object_batches_max,
                 .uploads_max = limits.uploads_in_flight_max,
                 .early_interval = config.early_flush_interval,
                 .early_bytes_max = config.early_flush_bytes};
  result.early_acks = config.early_acks;
  result.memory_bytes_max = limits.ingest_memory_bytes_max;
  result.chain_batches_max = limits.chain_batches_waiting_max;
  result.gap_hold = limits.sequence_gap_hold_max;
  result.commit_bytes_max = limits.commit_bytes_max;
  return result;
}

AppendVerdict verdict_of(object_store::StoreErrc error) {
  return error == object_store::StoreErrc::kNoSpace ? AppendVerdict::kStoreFull : AppendVerdict::kStoreFailed;
}

// What an object keeps alive once it is cached: its own buffer, and whole frames for referenced batches, which
// fill at least half of theirs (IngestBuffer::submit).
size_t capacity_of(const Upload& upload, uint64_t object_bytes) {
  size_t referenced = 0;
  for (const auto& run : upload.runs) {
    for (const WalBatch& batch : run->batches) {
      if (!batch.is_copied) referenced += batch.bytes.size();
    }
  }
  return static_cast<size_t>(object_bytes) + referenced;
}

}  // namespace

struct Ingest::Impl {
  // Where an object goes; read on the core when its upload begins.
  struct Place {
    Upload upload;
    metadata::WalObjectName name;
    LogPosition applied;
  };

  Impl(runtime::Runtime& runtime_in, metadata::MetadataClient& client_in, object_store::ObjectStore& store_in,
       BlockCache& cache_in, IngestConfig config_in, const Limits& limits, Logger logger_in,
       MetricRegistry& registry, PlantedBugs bugs)
      : runtime(runtime_in),
        client(client_in),
        store(store_in),
        cache(cache_in),
        config(std::move(config_in)),
        upload_deadline(limits.object_deadline_max),
        logger(logger_in.component("ingest")),
        metrics(registry),
        buffer(buffer_config(config, limits),
               StateQueries{[this](PartitionHandle partition, ProducerId producer, ProducerEpoch epoch) {
                              return client.state().next_sequence(partition, producer, epoch);
                            },
                            [this](PartitionHandle partition) {
                              auto view = client.state().partition(partition);
                              return view ? view->high_watermark : Offset(0);
                            }},
               metrics, bugs) {}

  // Core: does what the buffer asks for, until there is nothing more, and sets the timer for what comes by itself.
  void pump();
  void arm_timer();
  Place place_of(Upload upload) const;
  void start_upload(Upload upload);
  // nullopt: the upload has ended.
  std::optional<Place> renew_upload(uint64_t serial);
  void propose(CommitProposal proposal);

  runtime::Task<> upload(Place place);
  // Puts the object, once; gives what was put.
  runtime::Task<object_store::StoreResult<BuiltObject>> put(const Place& place, MonotonicTime deadline);
  runtime::Task<> await_commit(uint64_t serial, runtime::Completion<metadata::ProposeResult> completion);
  runtime::Executor& next_io() { return runtime.io(next_io_index.fetch_add(1) % runtime.io_count()); }

  runtime::Runtime& runtime;
  metadata::MetadataClient& client;
  object_store::ObjectStore& store;
  BlockCache& cache;
  const IngestConfig config;
  const Duration upload_deadline;  // of an object: all its PUTs
  const Logger logger;
  LogLimiter upload_failures{10s};
  LogLimiter complaints{10s};
  IngestMetrics metrics;
  std::atomic<size_t> next_io_index{0};

  // Core only.
  IngestBuffer buffer;
  std::unique_ptr<runtime::Timer> timer;
  MonotonicTime timer_at = MonotonicTime::never();
  std::vector<runtime::Completion<bool>> drain_waiters;
  bool is_stopped = false;

  runtime::TaskScope scope;
};

void Ingest::Impl::pump() {
  if (is_stopped) return;
  MonotonicTime now = runtime.now();
  buffer.advance(now);
  while (std::optional<Upload> next =
             buffer.take_upload(client.incarnation(), client.state().fence_epoch(), now)) {
    start_upload(std::move(*next));
  }
  for (CommitProposal& proposal : buffer.take_proposals(now)) propose(std::move(proposal));
  for (const std::string& text : buffer.take_complaints()) {
    logger.limited(complaints, now, LogLevel::kError, "a commit went wrong", {{"problem", text}});
  }
  if (buffer.is_empty()) {
    for (const auto& waiter : std::exchange(drain_waiters, {})) waiter.set(true);
  }
  arm_timer();
}

void Ingest::Impl::arm_timer() {
  MonotonicTime due = buffer.next_due(runtime.now());
  if (due == timer_at) return;
  timer.reset();
  timer_at = due;
  if (due == MonotonicTime::never()) return;
  timer = runtime.core().start_timer(due, [this] {
    timer_at = MonotonicTime::never();
    pump();
  });
}

Ingest::Impl::Place Ingest::Impl::place_of(Upload upload) const {
  Place place;
  place.name = {.log_id = client.identity().id,
                .nonce = client.nonce(),
                .epoch = upload.epoch,
                .number = upload.object.number};
  place.applied = client.state().position();
  place.upload = std::move(upload);
  return place;
}

void Ingest::Impl::start_upload(Upload upload_in) {
  // A scope that is closing drops the task; stop() answers what is left.
  scope.spawn(next_io(), "upload", upload(place_of(std::move(upload_in))));
}

std::optional<Ingest::Impl::Place> Ingest::Impl::renew_upload(uint64_t serial) {
  std::optional<Upload> renewed =
      buffer.renew_upload(serial, client.incarnation(), client.state().fence_epoch(), runtime.now());
  if (renewed) return place_of(std::move(*renewed));
  pump();
  return std::nullopt;
}

void Ingest::Impl::propose(CommitProposal proposal) {
  runtime::Completion<metadata::ProposeResult> completion;
  client.propose(std::move(proposal.commands), completion);
  scope.spawn(next_io(), "await commit", await_commit(proposal.serial, completion));
}

runtime::Task<object_store::StoreResult<BuiltObject>> Ingest::Impl::put(const Place& place,
                                                                        MonotonicTime deadline) {
  const Upload& upload = place.upload;
  WalHeader header{.shard = 0,
                   .log_id = place.name.log_id,
                   .nonce = place.name.nonce,
                   .object = upload.object,
                   .epoch = upload.epoch,
                   .created = runtime.wall_now()};
  BuiltObject built = build_wal_object(header, place.applied, upload.runs);
  std::string key = metadata::wal_key(config.key_prefix, place.name);
  auto stored = co_await runtime::with_deadline(deadline, store.put(std::move(key), built.slices));
  if (!stored) co_return pass_error(stored);
  co_return built;
}

// A PUT of unknown outcome is not sent again: its key may have been swept meanwhile, and a key is never written
// twice (invariant 8). The batches go into another object, named with the fence epoch of now, so that an upload that
// takes long is not one that the fence has passed (invariant 7).
runtime::Task<> Ingest::Impl::upload(Place place) {
  uint64_t serial = place.upload.serial;
  MonotonicTime deadline = runtime.now() + upload_deadline;
  object_store::Backoff backoff(runtime);
  while (true) {
    auto stored = co_await put(place, deadline);
    if (stored) {
      cache.insert_written(place.upload.object, stored->slices, capacity_of(place.upload, stored->bytes));
      stored->slices.clear();
      place.upload.runs.clear();
      auto built = std::make_shared<BuiltObject>(std::move(*stored));
      co_await runtime::call(runtime.core(), [this, serial, built] {
        buffer.upload_succeeded(serial, std::move(*built), runtime.now());
        pump();
      });
      co_return;
    }
    object_store::StoreError error = std::move(stored.error());
    MonotonicTime next_try = runtime.now() + backoff.next();
    bool goes_on = object_store::is_outcome_unknown(error.code) && next_try < deadline &&
                   co_await runtime::sleep_until(next_try) == runtime::Wake::kTimeReached;
    if (!goes_on) {
      logger.limited(upload_failures, runtime.now(), LogLevel::kWarn, "an upload failed",
                     {{"object", place.upload.object.number}, {"problem", error.message}});
      AppendVerdict verdict = verdict_of(error.code);
      co_await runtime::call(runtime.core(), [this, serial, verdict] {
        buffer.upload_failed(serial, verdict, runtime.now());
        pump();
      });
      co_return;
    }
    std::optional<Place> renewed =
        co_await runtime::call(runtime.core(), [this, serial] { return renew_upload(serial); });
    if (!renewed) co_return;
    place = std::move(*renewed);
  }
}

runtime::Task<> Ingest::Impl::await_commit(uint64_t serial,
                                           runtime::Completion<metadata::ProposeResult> completion) {
  metadata::ProposeResult unknown =
      fail(metadata::ProposeErrc::kUnknown, "stopped before the entry was applied");
  auto result = std::make_shared<metadata::ProposeResult>(
      co_await runtime::wait_until(completion, MonotonicTime::never(), unknown));
  co_await runtime::call(runtime.core(), [this, serial, result] {
    buffer.proposal_ended(serial, *result, runtime.now());
    pump();
  });
}

Ingest::Ingest(runtime::Runtime& runtime, metadata::MetadataClient& client, object_store::ObjectStore& store,
               BlockCache& cache, IngestConfig config, const Limits& limits, Logger logger,
               MetricRegistry& metrics, PlantedBugs bugs)
    : impl_(std::make_unique<Impl>(runtime, client, store, cache, std::move(config), limits,
                                   std::move(logger), metrics, bugs)) {}

Ingest::~Ingest() = default;

runtime::Completion<AppendResults> Ingest::submit(AppendRequest request) {
  runtime::Completion<AppendResults> completion;
  impl_->runtime.core().post([impl = impl_.get(), completion, request = std::move(request)]() mutable {
    impl->buffer.submit(
        std::move(request), [completion](AppendResults results) { completion.set(std::move(results)); },
        impl->runtime.now());
    impl->pump();
  });
  return completion;
}

runtime::Task<AppendResults> Ingest::append(AppendRequest request) {
  co_return co_await submit(std::move(request)).wait();
}

void Ingest::on_applied(const metadata::ApplyOutcome& outcome) {
  for (PartitionHandle partition : outcome.changed_partitions) {
    impl_->buffer.partition_changed(partition, impl_->runtime.now());
  }
  impl_->pump();
}

runtime::Task<bool> Ingest::drain(MonotonicTime deadline) {
  runtime::Completion<bool> drained;
  co_await runtime::call(impl_->runtime.core(), [impl = impl_.get(), drained] {
    impl->buffer.drain();
    impl->drain_waiters.push_back(drained);
    impl->pump();
  });
  co_return co_await runtime::wait_until(drained, deadline, false);
}

runtime::Task<> Ingest::stop() {
  co_await runtime::call(impl_->runtime.core(), [impl = impl_.get()] {
    impl->is_stopped = true;
    for (const auto& waiter : std::exchange(impl->drain_waiters, {})) waiter.set(impl->buffer.is_empty());
    impl->buffer.stop();
    impl->timer.reset();
  });
  co_await impl_->scope.close();
}

}  // namespace varve::storage
