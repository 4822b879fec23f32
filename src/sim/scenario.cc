#include "sim/scenario.h"

namespace varve::sim {
namespace {

constexpr size_t kFindingsKept = 5;

}  // namespace

void Findings::add(std::string text) {
  if (texts_.size() < kFindingsKept) texts_.push_back(std::move(text));
}

std::string Findings::to_string() const { return fmt::format("{}", fmt::join(texts_, "\n  ")); }

Outcome make_outcome(const World& world, const Findings& findings, RunEnd end) {
  Outcome outcome;
  outcome.trace_hash = world.trace_hash();
  outcome.steps = world.steps();
  outcome.time = world.now().since_zero();
  outcome.happenings = world.happenings();
  if (!findings.empty()) {
    outcome.verdict = Verdict::kWrong;
    outcome.message = findings.to_string();
  } else if (end != RunEnd::kDone) {
    outcome.verdict = Verdict::kStuck;
    outcome.message = end == RunEnd::kIdle        ? "nothing can happen any more, and not all is done"
                      : end == RunEnd::kStepLimit ? "too many steps, and not all is done"
                                                  : "too much time has passed, and not all is done";
  }
  return outcome;
}

}  // namespace varve::sim
