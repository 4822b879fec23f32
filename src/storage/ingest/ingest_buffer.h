// IngestBuffer: the bookkeeping of the write path, as plain functions over a given time: what waits, what becomes
// an object, what may be committed, and who is answered what. It does no I/O; Ingest does what it says.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/limits.h"
#include "base/planted_bugs.h"
#include "metadata/client/metadata_client.h"
#include "storage/ingest/append.h"
#include "storage/ingest/chain_table.h"
#include "storage/ingest/ingest_metrics.h"
#include "storage/ingest/pending.h"
#include "storage/ingest/seal_policy.h"

namespace varve::storage {

// The most that a run, and a producer's batch in it, add to a commit (metadata/state/entry.h, all varints at their
// longest).
inline constexpr size_t kRunCommitBytes = 64;
inline constexpr size_t kProducerCommitBytes = 32;

struct IngestBufferConfig {
  SealPolicyConfig seal{};
  bool early_acks = false;
  size_t memory_bytes_max = 256 * kMiB;
  size_t chain_batches_max = 1'000;
  Duration gap_hold = 1s;
  size_t commit_bytes_max = 128 * kKiB;  // of the commands of one proposal, about
  Duration retry_after = 1s;             // of early-acknowledged batches
};

// What the buffer asks of cluster state.
struct StateQueries {
  ChainTable::NextSequence next_sequence;
  std::function<Offset(PartitionHandle)> high_watermark;
};

// An upload to start: build the object of these runs, PUT it, and tell the buffer.
struct Upload {
  uint64_t serial = 0;
  metadata::ObjectId object;
  FenceEpoch epoch;
  std::vector<std::shared_ptr<const WalRun>> runs;
};

// Commands to propose together, and the name to give their fate under.
struct CommitProposal {
  uint64_t serial = 0;
  std::vector<metadata::Command> commands;
};

// Owned by Ingest; lives on the core. After any call, take uploads and proposals until there are none, then ask for
// next_due().
class IngestBuffer {
 public:
  using Reply = std::move_only_function<void(AppendResults)>;

  IngestBuffer(IngestBufferConfig config, StateQueries state, IngestMetrics& metrics, PlantedBugs bugs = {});

  // Takes the request's place. `reply` is called once, perhaps inside the call.
  void submit(AppendRequest request, Reply reply, MonotonicTime now);
  // Does what is due: lets waiting requests in, ends holds, seals.
  void advance(MonotonicTime now);
  // When advance() has something to do if nothing else happens; never() if not.
  MonotonicTime next_due(MonotonicTime now) const;
  // The partition's producers may have got further through another broker.
  void partition_changed(PartitionHandle partition, MonotonicTime now);

  // The next upload, if one waits and a slot is free. It gets the incarnation's next object number, and `epoch`,
  // which is current now.
  std::optional<Upload> take_upload(Incarnation incarnation, FenceEpoch epoch, MonotonicTime now);
  // Nobody knows what the upload's PUT came to, or will come to: the same batches as another object, which leaves
  // the first to the sweep. nullopt: nobody waits for them any more, the upload has ended.
  std::optional<Upload> renew_upload(uint64_t serial, Incarnation incarnation, FenceEpoch epoch,
                                     MonotonicTime now);
  void upload_succeeded(uint64_t serial, BuiltObject built, MonotonicTime now);
  // Gives up the object: its batches get `verdict`, early-acknowledged ones another upload.
  void upload_failed(uint64_t serial, AppendVerdict verdict, MonotonicTime now);

  // What may be committed now, in chain order.
  std::vector<CommitProposal> take_proposals(MonotonicTime now);
  void proposal_ended(uint64_t serial, const metadata::ProposeResult& result, MonotonicTime now);

  // Takes no more requests, and seals without waiting.
  void drain() { is_draining_ = true; }
  // Answers everything that is left.
  void stop();

  // Nothing is waiting, uploading or being committed.
  bool is_empty() const { return waiting_requests_.empty() && chains_.size() == 0; }
  size_t memory_bytes() const { return memory_bytes_; }
  size_t uploads() const { return upload_starts_.size(); }
  size_t requests_waiting() const { return waiting_requests_.size(); }
  // Messages for the log about what must not happen; emptied by the call.
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }

 private:
  struct WaitingRequest {
    std::vector<IncomingBatch> batches;
    std::vector<ChainKey> chains;
    size_t charge = 0;
    size_t frame_bytes = 0;
  };
  struct GroupKey;
  struct Groups;

  // ingest_buffer.cc: arrival, holding, sealing.
  ChainKey chain_key(const AppendBatch& batch, uint64_t connection) const;
  void let_waiting_in(MonotonicTime now);
  void enter(IncomingBatch batch, const ChainKey& key, MonotonicTime now);
  void offer(Chain& chain, IncomingBatch batch, MonotonicTime now);
  void take_due_of(Chain& chain, MonotonicTime now);
  void buffer(IncomingBatch batch, MonotonicTime now);
  SealInput seal_input() const;
  MonotonicTime stalled_at(MonotonicTime upload_start) const;
  UploadCounts upload_counts(MonotonicTime now) const;
  MonotonicTime seal_at(MonotonicTime now) const;
  void seal(MonotonicTime now);
  PendingRun& run_for(Groups& groups, const IncomingBatch& batch, uint64_t seal_serial);
  void queue_object(std::vector<std::unique_ptr<PendingRun>> runs, MonotonicTime not_before);

  // ingest_commit.cc: uploads, commits, verdicts.
  void upload_ended(const SealedObject& object);
  Upload name_upload(SealedObject& object, Incarnation incarnation, FenceEpoch epoch);
  void mark_ready(PendingRun& run, MonotonicTime now);
  metadata::CommitObject commit_of(const SealedObject& object) const;
  void early_proposal_failed(PendingRun& run, metadata::ProposeErrc error, MonotonicTime now);
  void settle_from(PendingRun& run, const metadata::RunOutcome* outcome, MonotonicTime now);
  void settle(PendingRun& run, const std::vector<AppendResult>& results, MonotonicTime now);
  // Before their commit: later batches of their chains that wait here fail too.
  void fail(std::vector<PendingRun*> runs, AppendVerdict verdict, MonotonicTime now);
  // Answers what is buffered, held or waits for room of the chains marked as failing, and clears the marks.
  void spread_failure(const std::vector<Chain*>& chains, MonotonicTime now);
  void fail_waiting_requests();
  void upload_again(std::vector<PendingRun*> runs, MonotonicTime not_before);
  void erase_settled_objects();
  void answer(PendingBatch& batch, const AppendResult& result);
  void drop(IncomingBatch& batch, AppendVerdict verdict);
  void release(size_t charge) { memory_bytes_ -= charge; }

  const IngestBufferConfig config_;
  const StateQueries state_;
  IngestMetrics& metrics_;
  const PlantedBugs bugs_;
  SealPolicy policy_;
  ChainTable chains_;
  bool is_draining_ = false;
  bool is_stopped_ = false;

  std::deque<WaitingRequest> waiting_requests_;
  size_t memory_bytes_ = 0;

  std::vector<IncomingBatch> buffer_;  // in order of arrival
  SealInput input_;                    // of buffer_

  std::map<uint64_t, std::unique_ptr<SealedObject>> objects_;
  std::deque<uint64_t> upload_queue_;           // serials of objects
  std::multiset<MonotonicTime> upload_starts_;  // of the uploads under way
  Duration usual_put_;                          // what an upload takes, smoothed
  uint64_t next_serial_ = 1;                    // of seals, objects, runs and proposals alike
  Incarnation incarnation_;
  uint64_t next_object_number_ = 1;

  std::vector<PendingRun*> ready_;
  std::multimap<MonotonicTime, PendingRun*> ready_later_;
  struct OpenProposal {
    std::vector<std::vector<PendingRun*>> runs;  // of each command
    MonotonicTime proposed;
  };
  std::map<uint64_t, OpenProposal> proposals_;
  std::vector<std::string> complaints_;
};

}  // namespace varve::storage
