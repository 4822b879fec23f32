#include "storage/fetch/fetcher.h"

#include <algorithm>

#include "runtime/task_scope.h"
#include "storage/fetch/batch_assembler.h"
#include "storage/fetch/fetch_planner.h"
#include "storage/fetch/fetch_waiters.h"
#include "storage/fetch/offset_lookup.h"
#include "storage/fetch/run_reader.h"

namespace varve::storage {
namespace {

// Runs up to this size are read whole, so that those who come for the rest find it.
constexpr size_t kWholeRunBytes = kMiB;
// For one reader; of a small cache no more than its share, or those who read ahead drive out what others came for.
constexpr size_t kReadAheadBytesMax = 4 * kMiB;
constexpr size_t kReadersAhead = 64;

// How much of the run, from its start, a fetch from `from` that wants `wanted` bytes will need; a guess.
uint64_t bytes_to_read(const metadata::StoredRun& run, Offset from, size_t wanted) {
  if (run.bytes <= std::max<size_t>(wanted, kWholeRunBytes)) return run.bytes;
  uint64_t skipped = run.bytes - run.bytes_from(from);
  return std::min<uint64_t>(run.bytes, skipped + std::max<size_t>(wanted, kWholeRunBytes));
}

class AssemblingVisitor final : public RunVisitor {
 public:
  AssemblingVisitor(const PlannedPartition& plan, int32_t leader_epoch, bool serve_unchecked)
      : assembler(plan, leader_epoch, serve_unchecked) {}

  BatchAssembler::End visit(const metadata::StoredRun& run, const ObjectBytes& bytes) override {
    return assembler.add(run, bytes);
  }
  uint64_t needed_to() const override { return assembler.needed_to(); }
  std::string problem() const override { return assembler.problem(); }

  BatchAssembler assembler;
};

struct ReadPartition {
  FetchedPartition fetched;
  bool is_missing = false;  // an object was not there
};

}  // namespace

struct Fetcher::Impl {
  using Request = std::shared_ptr<const FetchRequest>;

  struct Planned {
    PlannedFetch fetch;
    std::optional<FetchWaiters::Ticket> ticket;  // set: not enough yet, wait for it
  };

  Impl(runtime::Runtime& runtime_in, metadata::MetadataClient& client_in, object_store::ObjectStore& store,
       BlockCache& cache, FetcherConfig config, const Limits& limits_in, Logger logger,
       MetricRegistry& metrics, PlantedBugs bugs_in)
      : runtime(runtime_in),
        client(client_in),
        limits(limits_in),
        bugs(bugs_in),
        objects(runtime_in, store, cache, config.key_prefix, limits_in, metrics),
        run_reader(objects, logger.component("fetch"), runtime_in, metrics),
        lookup(runtime_in, client_in, run_reader, limits_in),
        waiting_gauge(metrics.gauge("varve_fetches_waiting", "Fetches that wait for more bytes")),
        fetched_bytes(
            metrics.counter("varve_fetched_bytes_total", "Bytes of batches in answers to fetches")) {}

  // Core.
  Planned plan(const FetchRequest& request, bool end_is_final, bool may_wait);
  // Io.
  runtime::Task<PlannedFetch> plan_when_ready(Request request);
  runtime::Task<std::vector<ReadPartition>> read(std::shared_ptr<const PlannedFetch> fetch);
  runtime::Task<ReadPartition> read_partition(std::shared_ptr<const PlannedFetch> fetch, size_t index,
                                              std::vector<StartedRead> reads);
  runtime::Task<std::vector<FetchedPartition>> fetch(Request request);
  runtime::Task<> find_into(OffsetQuery query, bool is_read_committed,
                            runtime::Completion<FoundOffset> found);

  runtime::Runtime& runtime;
  metadata::MetadataClient& client;
  const Limits limits;
  const PlantedBugs bugs;
  ObjectReader objects;
  RunReader run_reader;
  OffsetLookup lookup;
  Gauge& waiting_gauge;
  Counter& fetched_bytes;

  // Core only.
  FetchWaiters waiters;
  SequentialReaders readers;
  bool is_stopping = false;

  runtime::TaskScope scope;  // lookups of one request run side by side
};

Fetcher::Impl::Planned Fetcher::Impl::plan(const FetchRequest& request, bool end_is_final, bool may_wait) {
  PlanOptions options{
      .log_id = client.identity().id,
      .has_progress = client.has_progress(),
      .end_is_final = end_is_final || bugs.absence_without_sync,
      .readers = &readers,
      .read_ahead_bytes = std::min(kReadAheadBytesMax, limits.cache_bytes_max / kReadersAhead)};
  Planned planned{.fetch = plan_fetch(client.state(), request, options), .ticket = {}};
  const PlannedFetch& fetch = planned.fetch;
  bool is_enough = fetch.has_error || fetch.bytes_estimate >= request.bytes_min || request.partitions.empty();
  if (!is_enough && may_wait && !is_stopping && runtime.now() < request.deadline) {
    if (waiters.size() >= limits.fetches_waiting_max) {
      planned.ticket.emplace();  // waits for its deadline only
      return planned;
    }
    planned.ticket = waiters.add(request, fetch);
    waiting_gauge.set(static_cast<double>(waiters.size()));
    return planned;
  }
  for (size_t i = 0; i < fetch.partitions.size(); ++i) {
    const PlannedPartition& partition = fetch.partitions[i];
    if (partition.runs.empty()) continue;
    readers.note(request.partitions[i].partition, partition.from, partition.runs.back().run.end_offset());
  }
  return planned;
}

runtime::Task<PlannedFetch> Fetcher::Impl::plan_when_ready(Request request) {
  bool may_wait = true;
  bool has_synced = false;
  bool end_is_final = false;
  while (true) {
    Planned planned = co_await runtime::call(runtime.core(), [this, request, end_is_final, may_wait] {
      return plan(*request, end_is_final, may_wait);
    });
    if (planned.ticket) {
      co_await runtime::wait_until(planned.ticket->woken, request->deadline, runtime::Done{});
      uint64_t id = planned.ticket->id;
      co_await runtime::call(runtime.core(), [this, id] {
        waiters.remove(id);
        waiting_gauge.set(static_cast<double>(waiters.size()));
      });
      may_wait = false;
    } else if (planned.fetch.is_beyond_end && !has_synced) {
      has_synced = true;
      end_is_final = (co_await client.sync(runtime.now() + limits.sync_deadline_max)).has_value();
    } else {
      co_return std::move(planned.fetch);
    }
  }
}

runtime::Task<std::vector<ReadPartition>> Fetcher::Impl::read(std::shared_ptr<const PlannedFetch> fetch) {
  runtime::Executor& executor = *(co_await runtime::this_context()).executor;
  std::vector<std::vector<StartedRead>> reads(fetch->partitions.size());
  for (size_t i = 0; i < fetch->partitions.size(); ++i) {
    const PlannedPartition& partition = fetch->partitions[i];
    size_t wanted = partition.bytes_max;
    for (const PlannedRun& run : partition.runs) {
      if (run.run.is_marker) {
        reads[i].emplace_back();
        continue;
      }
      uint64_t bytes = bytes_to_read(run.run, partition.from, wanted);
      reads[i].push_back(run_reader.start(executor, run, bytes, partition.read_class));
      wanted -= std::min<size_t>(wanted, bytes);
    }
  }
  // After everything that somebody waits for.
  for (const PlannedPartition& partition : fetch->partitions) {
    for (const PlannedRun& run : partition.read_ahead) {
      if (!run.run.is_marker) run_reader.start(executor, run, run.run.bytes, ReadClass::kCatchUp);
    }
  }
  std::vector<ReadPartition> results;
  results.reserve(fetch->partitions.size());
  for (size_t i = 0; i < fetch->partitions.size(); ++i) {
    results.push_back(co_await read_partition(fetch, i, std::move(reads[i])));
  }
  co_return results;
}

runtime::Task<ReadPartition> Fetcher::Impl::read_partition(std::shared_ptr<const PlannedFetch> fetch,
                                                           size_t index, std::vector<StartedRead> reads) {
  const PlannedPartition& plan = fetch->partitions[index];
  ReadPartition result;
  FetchedPartition& fetched = result.fetched;
  fetched.error = plan.error;
  if (plan.error != FetchErrc::kUnknownPartition) {
    fetched.high_watermark = plan.view.high_watermark;
    fetched.last_stable = plan.view.last_stable;
    fetched.log_start = plan.view.log_start;
    fetched.aborted = plan.aborted;
  }
  int32_t leader_epoch = static_cast<int32_t>(client.identity().generation.value());
  AssemblingVisitor visitor(plan, leader_epoch, bugs.serve_corrupt_read);
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    if (plan.runs[i].run.is_marker) continue;
    RunReadEnd end = co_await run_reader.finish(plan.runs[i], std::move(reads[i]), visitor, plan.read_class);
    if (end == RunReadEnd::kDone) continue;
    result.is_missing = end == RunReadEnd::kMissing;
    // What came before the bad run is served; the next fetch begins at it and gets the error.
    if (end != RunReadEnd::kStopped && visitor.assembler.bytes_taken() == 0) {
      fetched.error = end == RunReadEnd::kCorrupt ? FetchErrc::kCorrupt : FetchErrc::kStorage;
    }
    break;
  }
  fetched.records_bytes = visitor.assembler.bytes_taken();
  fetched.records = visitor.assembler.finish();
  co_return result;
}

runtime::Task<std::vector<FetchedPartition>> Fetcher::Impl::fetch(Request request) {
  auto planned = std::make_shared<const PlannedFetch>(co_await plan_when_ready(request));
  std::vector<ReadPartition> read_partitions = co_await read(planned);
  bool is_missing = std::any_of(read_partitions.begin(), read_partitions.end(),
                                [](const ReadPartition& partition) { return partition.is_missing; });
  if (is_missing) {
    // The plan may be old: a newer state names other objects, or says that the offset is gone.
    bool is_synced = (co_await client.sync(runtime.now() + limits.sync_deadline_max)).has_value();
    Planned again = co_await runtime::call(
        runtime.core(), [this, request, is_synced] { return plan(*request, is_synced, false); });
    planned = std::make_shared<const PlannedFetch>(std::move(again.fetch));
    read_partitions = co_await read(planned);
  }
  std::vector<FetchedPartition> results;
  results.reserve(read_partitions.size());
  for (ReadPartition& partition : read_partitions) {
    fetched_bytes.add(partition.fetched.records_bytes);
    results.push_back(std::move(partition.fetched));
  }
  co_return results;
}

runtime::Task<> Fetcher::Impl::find_into(OffsetQuery query, bool is_read_committed,
                                         runtime::Completion<FoundOffset> found) {
  FoundOffset answer = co_await lookup.find(query, is_read_committed);
  if (answer.is_missing) {
    // As in fetch(): a newer state names other objects, or says that the partition is gone.
    (void)co_await client.sync(runtime.now() + limits.sync_deadline_max);
    answer = co_await lookup.find(query, is_read_committed);
  }
  found.set(std::move(answer));
}

Fetcher::Fetcher(runtime::Runtime& runtime, metadata::MetadataClient& client,
                 object_store::ObjectStore& store, BlockCache& cache, FetcherConfig config,
                 const Limits& limits, Logger logger, MetricRegistry& metrics, PlantedBugs bugs)
    : impl_(std::make_unique<Impl>(runtime, client, store, cache, std::move(config), limits,
                                   std::move(logger), metrics, bugs)) {}

Fetcher::~Fetcher() = default;

runtime::Task<std::vector<FetchedPartition>> Fetcher::fetch(FetchRequest request) {
  co_return co_await impl_->fetch(std::make_shared<const FetchRequest>(std::move(request)));
}

runtime::Task<std::vector<FoundOffset>> Fetcher::list_offsets(std::vector<OffsetQuery> queries,
                                                              bool is_read_committed,
                                                              MonotonicTime deadline) {
  std::vector<FoundOffset> results(queries.size(), FoundOffset{.error = FetchErrc::kNoProgress});
  if (!impl_->bugs.absence_without_sync) {
    auto synced = co_await impl_->client.sync(deadline);
    if (!synced) co_return results;
  }
  runtime::Executor& executor = *(co_await runtime::this_context()).executor;
  std::vector<runtime::Completion<FoundOffset>> found(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    bool is_started = impl_->scope.spawn(executor, "offset lookup",
                                         impl_->find_into(queries[i], is_read_committed, found[i]));
    if (!is_started) found[i].set(results[i]);
  }
  for (size_t i = 0; i < queries.size(); ++i) {
    results[i] = co_await runtime::wait_until(found[i], MonotonicTime::never(), results[i]);
  }
  co_return results;
}

void Fetcher::on_applied(const metadata::ApplyOutcome& outcome) {
  for (PartitionHandle partition : outcome.changed_partitions) {
    impl_->waiters.partition_changed(impl_->client.state(), partition);
  }
}

runtime::Task<> Fetcher::stop() {
  co_await runtime::call(impl_->runtime.core(), [impl = impl_.get()] {
    impl->is_stopping = true;
    impl->waiters.wake_all();
  });
  co_await impl_->scope.close();
  co_await impl_->objects.stop();
}

}  // namespace varve::storage
