#include "storage/ingest/ingest_buffer.h"

#include <algorithm>
#include <tuple>

namespace varve::storage {
namespace {

// What a waiting batch costs besides its bytes: its bookkeeping here and its part of entries.
constexpr size_t kBatchOverheadBytes = 256;
// An upload that takes so many times the usual counts as stalled.
constexpr int kStalledFactor = 3;

}  // namespace

// Batches of one group become one run: whatever one of them waits for, all wait for.
struct IngestBuffer::GroupKey {
  PartitionHandle partition;
  uint64_t waits_for = 0;  // serial of the run
  uint8_t kind = 0;

  auto operator<=>(const GroupKey&) const = default;
};

struct IngestBuffer::Groups {
  std::map<GroupKey, PendingRun*> open;
  std::vector<std::unique_ptr<PendingRun>> runs;
};

IngestBuffer::IngestBuffer(IngestBufferConfig config, StateQueries state, IngestMetrics& metrics,
                           PlantedBugs bugs)
    : config_(config),
      state_(std::move(state)),
      metrics_(metrics),
      bugs_(bugs),
      policy_(config.seal),
      chains_(state_.next_sequence),
      usual_put_(config.seal.interval / 4) {}

ChainKey IngestBuffer::chain_key(const AppendBatch& batch, uint64_t connection) const {
  bool is_producer = batch.producer_id != kNoProducerId;
  return {batch.partition, is_producer,
          is_producer ? batch.producer_id.value() : static_cast<int64_t>(connection)};
}

void IngestBuffer::submit(AppendRequest request, Reply reply, MonotonicTime now) {
  auto pending = std::make_shared<PendingRequest>();
  pending->results.resize(request.batches.size());
  pending->open = request.batches.size();
  pending->reply = std::move(reply);
  if (request.batches.empty()) return pending->reply({});
  if (is_draining_ || is_stopped_) {
    for (AppendResult& result : pending->results) result.verdict = AppendVerdict::kStopping;
    return pending->reply(std::move(pending->results));
  }

  // A referenced batch keeps the whole frame alive, so that is only done where batches fill most of it.
  size_t large_bytes = 0;
  for (const AppendBatch& batch : request.batches) {
    if (batch.bytes.size() >= kReferencedBatchBytesMin) large_bytes += batch.bytes.size();
  }
  bool may_reference = large_bytes >= request.frame_bytes / 2;
  WaitingRequest waiting;
  waiting.batches.reserve(request.batches.size());
  waiting.chains.reserve(request.batches.size());
  for (AppendBatch& batch : request.batches) {
    IncomingBatch incoming;
    size_t bytes = batch.bytes.size();
    incoming.is_copied = !may_reference || bytes < kReferencedBatchBytesMin;
    // A copied batch is in memory twice during its upload; a referenced one brings its share of the frame.
    size_t frame_share = incoming.is_copied ? 0 : bytes * request.frame_bytes / large_bytes;
    incoming.pending = {
        .request = pending,
        .slot = static_cast<uint32_t>(waiting.batches.size()),
        .records = batch.records,
        .charge = std::max(incoming.is_copied ? 2 * bytes : bytes, frame_share) + kBatchOverheadBytes,
        .arrived = now,
        .held_until = MonotonicTime::never()};
    waiting.charge += incoming.pending.charge;
    waiting.chains.push_back(chain_key(batch, request.connection));
    incoming.batch = std::move(batch);
    waiting.batches.push_back(std::move(incoming));
  }
  waiting_requests_.push_back(std::move(waiting));
  advance(now);
}

void IngestBuffer::advance(MonotonicTime now) {
  if (is_stopped_) return;
  let_waiting_in(now);
  for (Chain* chain : chains_.holds_ended(now)) take_due_of(*chain, now);
  while (seal_at(now) <= now) seal(now);
  metrics_.memory_bytes.set(static_cast<double>(memory_bytes_));
  metrics_.requests_waiting.set(static_cast<double>(waiting_requests_.size()));
}

MonotonicTime IngestBuffer::next_due(MonotonicTime now) const {
  if (is_stopped_) return MonotonicTime::never();
  MonotonicTime due = std::min(seal_at(now), chains_.next_hold_end());
  if (input_.batches > 0) {
    // When one stalls, what waits may go earlier.
    for (MonotonicTime start : upload_starts_) {
      if (stalled_at(start) > now) due = std::min(due, stalled_at(start));
    }
  }
  if (!ready_later_.empty()) due = std::min(due, ready_later_.begin()->first);
  if (uploads() < config_.seal.uploads_max) {
    for (uint64_t serial : upload_queue_) due = std::min(due, objects_.at(serial)->not_before);
  }
  return due;
}

void IngestBuffer::let_waiting_in(MonotonicTime now) {
  while (!waiting_requests_.empty()) {
    WaitingRequest& first = waiting_requests_.front();
    bool has_room = memory_bytes_ == 0 || memory_bytes_ + first.charge <= config_.memory_bytes_max;
    if (!has_room && !bugs_.unbounded_buffer) return;
    WaitingRequest request = std::move(first);
    waiting_requests_.pop_front();
    // Before any batch can give its part back.
    memory_bytes_ += request.charge;
    for (size_t i = 0; i < request.batches.size(); ++i)
      enter(std::move(request.batches[i]), request.chains[i], now);
  }
}

void IngestBuffer::enter(IncomingBatch batch, const ChainKey& key, MonotonicTime now) {
  Chain& chain = chains_.find_or_make(key);
  ++chain.open;
  batch.pending.chain = &chain;
  if (chain.open > config_.chain_batches_max) {
    chain.is_failing = true;
    fail_waiting_requests();
    chain.is_failing = false;
    return drop(batch, AppendVerdict::kTooManyWaiting);
  }
  if (config_.early_acks && !key.is_producer) {
    batch.pending.is_early = true;
    batch.pending.request->set_result(batch.pending.slot, {.verdict = AppendVerdict::kBuffered});
    batch.pending.request.reset();
  }
  if (key.is_producer) {
    offer(chain, std::move(batch), now);
  } else {
    buffer(std::move(batch), now);
  }
}

void IngestBuffer::offer(Chain& chain, IncomingBatch batch, MonotonicTime now) {
  SequencePlace place = chains_.place(chain, batch.batch);
  if (place == SequencePlace::kAhead) {
    metrics_.held_batches.add();
    chains_.hold(chain, std::move(batch), now + config_.gap_hold);
    return;
  }
  chains_.let_through(chain, batch.batch, place);
  buffer(std::move(batch), now);
  take_due_of(chain, now);
}

void IngestBuffer::take_due_of(Chain& chain, MonotonicTime now) {
  while (std::optional<IncomingBatch> due = chains_.take_due(chain, now)) {
    chains_.let_through(chain, due->batch, chains_.place(chain, due->batch));
    buffer(std::move(*due), now);
  }
}

void IngestBuffer::partition_changed(PartitionHandle partition, MonotonicTime now) {
  if (is_stopped_) return;
  for (Chain* chain : chains_.holding(partition)) take_due_of(*chain, now);
}

void IngestBuffer::buffer(IncomingBatch batch, MonotonicTime now) {
  ++input_.batches;
  input_.bytes += batch.batch.bytes.size();
  if (batch.pending.is_early) {
    input_.early_bytes += batch.batch.bytes.size();
    input_.early_oldest = std::min(input_.early_oldest, batch.pending.arrived);
  } else {
    input_.oldest = std::min(input_.oldest, batch.pending.arrived);
  }
  buffer_.push_back(std::move(batch));
  if (policy_.is_full(input_)) seal(now);
}

MonotonicTime IngestBuffer::stalled_at(MonotonicTime upload_start) const {
  return upload_start + kStalledFactor * usual_put_;
}

UploadCounts IngestBuffer::upload_counts(MonotonicTime now) const {
  UploadCounts counts{.all = uploads() + upload_queue_.size(), .stalled = 0};
  for (MonotonicTime start : upload_starts_) {
    if (now < stalled_at(start)) break;
    ++counts.stalled;
  }
  return counts;
}

MonotonicTime IngestBuffer::seal_at(MonotonicTime now) const {
  if (input_.batches == 0) return MonotonicTime::never();
  UploadCounts uploads_now = upload_counts(now);
  if (is_draining_ && uploads_now.all < config_.seal.uploads_max) return now;
  return policy_.seal_at(input_, uploads_now, now);
}

void IngestBuffer::seal(MonotonicTime now) {
  policy_.sealed(input_, now);
  uint64_t seal_serial = next_serial_++;
  Groups groups;
  for (IncomingBatch& batch : buffer_) {
    PendingRun& run = run_for(groups, batch, seal_serial);
    AppendBatch& from = batch.batch;
    run.data->batches.push_back({.bytes = std::move(from.bytes),
                                 .records = from.records,
                                 .max_timestamp = from.max_timestamp,
                                 .producer_id = from.producer_id,
                                 .producer_epoch = from.producer_epoch,
                                 .first_sequence = from.first_sequence,
                                 .is_copied = batch.is_copied});
    Chain& chain = *batch.pending.chain;
    chain.last_run = &run;
    chain.last_seal = seal_serial;
    run.charge += batch.pending.charge;
    run.batches.push_back(std::move(batch.pending));
  }
  buffer_.clear();
  input_ = {};
  std::sort(groups.runs.begin(), groups.runs.end(), [](const auto& a, const auto& b) {
    return std::tie(a->data->partition, a->serial) < std::tie(b->data->partition, b->serial);
  });
  queue_object(std::move(groups.runs), now);
}

// The run of this seal that the batch belongs to: of its partition and kind, and waiting for the run in which its
// chain has its last batch. So a failure takes whole runs, and a slow upload holds up those chains only.
PendingRun& IngestBuffer::run_for(Groups& groups, const IncomingBatch& batch, uint64_t seal_serial) {
  const AppendBatch& from = batch.batch;
  const Chain& chain = *batch.pending.chain;
  uint8_t kind =
      static_cast<uint8_t>((from.producer_id != kNoProducerId ? 1 : 0) | (from.is_transactional ? 2 : 0) |
                           (from.is_log_append_time ? 4 : 0) | (batch.pending.is_early ? 8 : 0));
  size_t batches_max =
      std::max<size_t>(1, (config_.commit_bytes_max - kRunCommitBytes) / kProducerCommitBytes);
  PendingRun* last = bugs_.chain_order_ignored ? nullptr : chain.last_run;
  PendingRun* waits_for = last;
  if (last != nullptr && chain.last_seal == seal_serial) {
    // In this object already: in the same run, as long as it takes batches of this kind.
    GroupKey key{from.partition, last->waits_for == nullptr ? 0 : last->waits_for->serial, kind};
    auto found = groups.open.find(key);
    if (found != groups.open.end() && found->second == last && last->batches.size() < batches_max)
      return *last;
  }
  GroupKey key{from.partition, waits_for == nullptr ? 0 : waits_for->serial, kind};
  PendingRun*& open = groups.open[key];
  if (open != nullptr && open->batches.size() < batches_max) return *open;

  auto run = std::make_unique<PendingRun>();
  run->data = std::make_shared<WalRun>();
  run->data->partition = from.partition;
  run->data->topic = from.topic;
  run->data->index = from.index;
  run->data->is_transactional = from.is_transactional;
  run->data->is_log_append_time = from.is_log_append_time;
  run->serial = next_serial_++;
  run->is_early = batch.pending.is_early;
  run->waits_for = waits_for;
  if (waits_for != nullptr) waits_for->waited_for_by.push_back(run.get());
  open = run.get();
  groups.runs.push_back(std::move(run));
  return *open;
}

void IngestBuffer::queue_object(std::vector<std::unique_ptr<PendingRun>> runs, MonotonicTime not_before) {
  auto object = std::make_unique<SealedObject>();
  object->serial = next_serial_++;
  object->unsettled = runs.size();
  object->not_before = not_before;
  for (auto& run : runs) run->object = object.get();
  object->runs = std::move(runs);
  upload_queue_.push_back(object->serial);
  objects_.emplace(object->serial, std::move(object));
}

void IngestBuffer::stop() {
  is_stopped_ = true;
  AppendResult stopping{.verdict = AppendVerdict::kStopping};
  AppendResult unknown{.verdict = AppendVerdict::kUnknownFate};
  for (WaitingRequest& request : waiting_requests_) {
    for (IncomingBatch& batch : request.batches)
      batch.pending.request->set_result(batch.pending.slot, stopping);
  }
  waiting_requests_.clear();
  for (IncomingBatch& batch : buffer_) answer(batch.pending, stopping);
  buffer_.clear();
  input_ = {};
  for (Chain* chain : chains_.holding()) {
    std::vector<IncomingBatch> held = chains_.take_held(*chain);
    for (IncomingBatch& batch : held) answer(batch.pending, stopping);
  }
  for (auto& [serial, object] : objects_) {
    for (auto& run : object->runs) {
      if (run->step == PendingRun::Step::kSettled) continue;
      bool is_proposed = run->step == PendingRun::Step::kProposed;
      for (PendingBatch& batch : run->batches) {
        if (batch.chain->last_run == run.get()) batch.chain->last_run = nullptr;
        if (batch.is_early) metrics_.early_batches_dropped.add();
        answer(batch, is_proposed ? unknown : stopping);
      }
    }
  }
  objects_.clear();
  upload_queue_.clear();
  ready_.clear();
  ready_later_.clear();
  proposals_.clear();
  memory_bytes_ = 0;
}

}  // namespace varve::storage
