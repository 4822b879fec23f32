#include "broker/handlers/proposing.h"

#include <utility>

namespace varve::broker {

runtime::Task<Result<metadata::CommandOutcome, metadata::ProposeError>> propose_until(
    runtime::Runtime& runtime, metadata::MetadataClient& metadata, metadata::Command command,
    MonotonicTime deadline) {
  using Outcome = Result<metadata::CommandOutcome, metadata::ProposeError>;
  runtime::Completion<metadata::ProposeResult> done;
  co_await runtime::call(runtime.core(), [&metadata, done, command = std::move(command)]() mutable {
    std::vector<metadata::Command> commands;
    commands.push_back(std::move(command));
    metadata.propose(std::move(commands), done);
  });
  metadata::ProposeResult late =
      fail(metadata::ProposeErrc::kUnknown, "the metadata log did not answer in time");
  metadata::ProposeResult result = co_await runtime::wait_until(done, deadline, std::move(late));
  if (!result) co_return pass_error(result);
  co_return Outcome(std::move(result->front()));
}

}  // namespace varve::broker
