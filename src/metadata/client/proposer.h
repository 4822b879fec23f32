// Proposer: turns commands into entries, one in flight, and finds out their fate. Bookkeeping only: no I/O, no
// clock, no coroutine, so that each rule of invariant 3 is a plain function with a test.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "base/planted_bugs.h"
#include "metadata/client/metadata_client.h"
#include "metadata/state/entry.h"
#include "metadata/state/outcome.h"

namespace varve::metadata {

// Life: one for the life of a MetadataClient, across registrations. Core only.
class Proposer {
 public:
  struct Outgoing {
    EntryKey key;
    Slice bytes;
    EntryRoom room = EntryRoom::kNormal;
  };

  Proposer(size_t proposals_waiting_max, PlantedBugs bugs)
      : proposals_waiting_max_(proposals_waiting_max), bugs_(bugs) {}

  // Queues the commands; they go together into one entry. Errors at once: kStopping, kRejected (more than an entry
  // holds), kFull (proposals_waiting_max wait already; twice as many for what brokers do for the cluster, so that no
  // client's load keeps that out).
  void propose(std::vector<Command> commands, runtime::Completion<ProposeResult> completion);

  // A new incarnation of this broker is registered: entries go under it from sequence 2 on. What was in flight
  // under the older one has met its fence without being applied, so it did not land: it goes first.
  void registered(Nonce nonce, Incarnation incarnation);
  // This broker's incarnation was fenced; nothing is sent until registered().
  void fenced();

  // The entry to append now: the one in flight again, byte for byte, or a new one. nullopt: nothing to do.
  std::optional<Outgoing> outgoing(FeatureLevel level, WallTime now);
  // The host refused for want of room. Only if the entry's fate was never in doubt its commands end: with kFull,
  // or, if they free room, they are queued again. An entry in doubt is sent again with room from the reserve.
  void refused_as_full(const EntryKey& key, const std::string& message);
  // The host gave no answer: the entry stays in flight until its fate is known.
  void outcome_unknown(const EntryKey& key);
  // The host has it. If it is sent again before it is seen applied, no answer to that can take it back.
  void appended(const EntryKey& key);

  // An entry of nonce `outcome.nonce` was applied here; own entries resolve their promises.
  void applied(const ApplyOutcome& outcome);
  // A snapshot replaced the state: promises of what landed fail as unknown; `last_sequence` is what it says of
  // this broker's incarnation, nullopt if it does not know it.
  void reloaded(std::optional<EntrySequence> last_sequence);

  // Ends everything: what is queued with kStopping, what is in flight with kUnknown.
  void stop();

  // Set when outgoing() may have something new. At most one waiter.
  runtime::Completion<runtime::Done> work();

  // Whether what there is to do is only commits of offsets that an entry to come has room for: each entry costs a
  // sync of the log, and a commit does not mind to wait a little for others.
  bool may_wait() const;
  // Set when may_wait() is over. At most one waiter.
  runtime::Completion<runtime::Done> work_that_cannot_wait();

  // Sequence of the newest entry handed out; 0 before the first.
  EntrySequence last_sequence() const { return last_sequence_; }

 private:
  struct Proposal {
    std::vector<Command> commands;
    runtime::Completion<ProposeResult> completion;
    size_t bytes = 0;  // upper bound, encoded
  };
  struct InFlight {
    EntryKey key;
    Slice bytes;
    EntryRoom room = EntryRoom::kNormal;
    std::vector<Proposal> proposals;
    bool may_have_landed = false;
  };

  void wake();
  void requeue_in_flight();

  const size_t proposals_waiting_max_;
  PlantedBugs bugs_;
  bool is_registered_ = false;
  bool is_stopped_ = false;
  // The host refused a normal entry and has taken none since: commands that free room go in entries of their own.
  bool is_full_ = false;
  Nonce nonce_;
  Incarnation incarnation_;
  EntrySequence last_sequence_;
  std::deque<Proposal> queue_;
  std::optional<InFlight> in_flight_;
  std::optional<runtime::Completion<runtime::Done>> waiter_;
  std::optional<runtime::Completion<runtime::Done>> impatient_waiter_;
};

}  // namespace varve::metadata
