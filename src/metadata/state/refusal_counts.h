// Counts of everything that apply refused or passed over, by cause. Not part of the state.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "metadata/state/outcome.h"

namespace varve::metadata {

// Rules behind CommandVerdict::kRefused.
enum class Rule : uint8_t {
  kMisplacedRegistration = 0,  // RegisterBroker anywhere but alone in a registration
  kUnknownIncarnation = 1,     // FenceBroker
  kLimitOutOfRange = 2,        // SetLimits, SetGroupLimits
  kBadTopic = 3,               // CreateTopic: no name, a too long one, no partition, or an id that is taken
  kFenceNotRaised = 4,         // AdvanceGcFence
  kNotDeletable = 5,           // ObjectsDeleted: at least one is not pending and fenced; the others are done
  kBadCount = 6,       // AllocateProducerIds of none or too many; AddPartitions of no more than there are
  kCutoffTooLate = 7,  // ExpireProducers, ExpireOffsets
  kLogStartOutOfRange = 8,  // SetLogStart: below the present one, or above the high watermark
  kSnapshotOutOfOrder = 9,  // SnapshotTaken: not above the newest, or not below this entry
  kPredecessorGone = 10,    // SnapshotTaken: reuses chunks of a snapshot that is not retained
  kBadGroup =
      11,  // SaveGroup: ids that do not rise, members of an empty group, details that nobody has; any id too long
};
inline constexpr size_t kRules = 12;

// The rule as CommandOutcome::detail names it.
std::string_view name_of(Rule rule);
// "gap"; empty for kApplied.
std::string_view name_of(EntryVerdict verdict);

// All causes are there from the start, with 0, so that a report shows which never happened.
class RefusalCounts {
 public:
  RefusalCounts();

  // Count nothing for kApplied, kAccepted, kDone and, as a rule says more, kRefused.
  void count(EntryVerdict verdict) { bump(entries_, static_cast<size_t>(verdict)); }
  void count(BatchVerdict verdict) { bump(batches_, static_cast<size_t>(verdict)); }
  void count(CommandVerdict verdict) { bump(commands_, static_cast<size_t>(verdict)); }
  void count(Rule rule) { bump(rules_, static_cast<size_t>(rule)); }

  // "entry.gap", "batch.duplicate", "command.topic_exists", "command.fence_not_raised", ...
  const std::map<std::string, uint64_t>& by_name() const { return by_name_; }

 private:
  template <size_t N>
  static void bump(std::array<uint64_t*, N>& counters, size_t at) {
    if (counters[at] != nullptr) ++*counters[at];
  }

  std::map<std::string, uint64_t> by_name_;
  // Into by_name_, whose nodes stay where they are.
  std::array<uint64_t*, 8> entries_{};
  std::array<uint64_t*, 9> batches_{};
  std::array<uint64_t*, 15> commands_{};
  std::array<uint64_t*, kRules> rules_{};
};

}  // namespace varve::metadata
