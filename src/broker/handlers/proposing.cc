#include "broker/handlers/proposing.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace varve::broker {
namespace {

using Waiting = std::vector<runtime::Completion<metadata::ProposeResult>>;

// So that one request leaves most of the proposer's queue to others.
constexpr size_t kProposalsAtOnce = 1'000;

// Each command by itself: one that fails takes no other with it.
Waiting propose(metadata::MetadataClient& metadata, std::vector<metadata::Command> commands) {
  Waiting waiting(commands.size());
  for (size_t i = 0; i < commands.size(); ++i) {
    std::vector<metadata::Command> single;
    single.push_back(std::move(commands[i]));
    metadata.propose(std::move(single), waiting[i]);
  }
  return waiting;
}

}  // namespace

runtime::Task<std::vector<ProposedOutcome>> propose_all(runtime::Runtime& runtime,
                                                        metadata::MetadataClient& metadata,
                                                        std::vector<metadata::Command> commands,
                                                        MonotonicTime deadline) {
  std::vector<ProposedOutcome> outcomes;
  outcomes.reserve(commands.size());
  for (size_t first = 0; first < commands.size(); first += kProposalsAtOnce) {
    size_t last = std::min(commands.size(), first + kProposalsAtOnce);
    std::vector<metadata::Command> part(
        std::make_move_iterator(commands.begin() + static_cast<ptrdiff_t>(first)),
        std::make_move_iterator(commands.begin() + static_cast<ptrdiff_t>(last)));
    Waiting waiting = co_await runtime::call(runtime.core(), [&metadata, part = std::move(part)]() mutable {
      return propose(metadata, std::move(part));
    });
    for (const auto& one : waiting) {
      metadata::ProposeResult late =
          fail(metadata::ProposeErrc::kUnknown, "the metadata log did not answer in time");
      metadata::ProposeResult result = co_await runtime::wait_until(one, deadline, std::move(late));
      if (result) {
        outcomes.push_back(std::move(result->front()));
      } else {
        outcomes.push_back(pass_error(result));
      }
    }
  }
  co_return outcomes;
}

runtime::Task<ProposedOutcome> propose_one(runtime::Runtime& runtime, metadata::MetadataClient& metadata,
                                           metadata::Command command, MonotonicTime deadline) {
  std::vector<metadata::Command> commands;
  commands.push_back(std::move(command));
  auto outcomes = co_await propose_all(runtime, metadata, std::move(commands), deadline);
  co_return std::move(outcomes.front());
}

}  // namespace varve::broker
