#include "metadata/state/refusal_counts.h"

namespace varve::metadata {
namespace {

// In the order of the enums; empty: not counted.
constexpr std::array<std::string_view, 8> kEntryNames = {
    "",         "malformed", "above_feature_level", "unknown_incarnation", "fenced",
    "repeated", "gap",       "bad_registration"};
constexpr std::array<std::string_view, 9> kBatchNames = {"",
                                                         "duplicate",
                                                         "unknown_partition",
                                                         "out_of_order",
                                                         "stale_epoch",
                                                         "invalid_txn_state",
                                                         "object_fenced",
                                                         "already_committed",
                                                         "bad_run"};
constexpr std::array<std::string_view, 15> kCommandNames = {"",
                                                            "",
                                                            "topic_exists",
                                                            "unknown_topic",
                                                            "over_limit",
                                                            "level_refused",
                                                            "stale_configs",
                                                            "not_coordinator",
                                                            "stale_group",
                                                            "unknown_group",
                                                            "unknown_member",
                                                            "illegal_generation",
                                                            "fenced_instance",
                                                            "rebalance_in_progress",
                                                            "non_empty_group"};
constexpr std::array<std::string_view, kRules> kRuleNames = {
    "misplaced_registration", "unknown_incarnation",   "limit_out_of_range", "bad_topic",
    "fence_not_raised",       "not_deletable",         "bad_count",          "cutoff_too_late",
    "log_start_out_of_range", "snapshot_out_of_order", "predecessor_gone",   "bad_group"};
static_assert(kEntryNames[static_cast<size_t>(EntryVerdict::kBadRegistration)] == "bad_registration");
static_assert(kBatchNames[static_cast<size_t>(BatchVerdict::kBadRun)] == "bad_run");
static_assert(kCommandNames[static_cast<size_t>(CommandVerdict::kNonEmptyGroup)] == "non_empty_group");
static_assert(kRuleNames[static_cast<size_t>(Rule::kBadGroup)] == "bad_group");

}  // namespace

std::string_view name_of(Rule rule) { return kRuleNames[static_cast<size_t>(rule)]; }
std::string_view name_of(EntryVerdict verdict) { return kEntryNames[static_cast<size_t>(verdict)]; }

RefusalCounts::RefusalCounts() {
  auto fill = [this](auto& counters, const auto& names, std::string_view group) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty()) counters[i] = &by_name_[fmt::format("{}.{}", group, names[i])];
    }
  };
  fill(entries_, kEntryNames, "entry");
  fill(batches_, kBatchNames, "batch");
  fill(commands_, kCommandNames, "command");
  fill(rules_, kRuleNames, "command");
}

}  // namespace varve::metadata
