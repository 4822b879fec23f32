#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

// How long an accepted append may wait to be seen by the follower before it is appended again (harmlessly).
constexpr Duration kSeeOwnEntryWithin = 2s;
// A full log is asked again after this.
constexpr Duration kFullPause = 200ms;
// From the start of one append to that of the next if it would hold nothing but committed offsets.
constexpr Duration kBetweenOffsetCommits = 2ms;

}  // namespace

using runtime::call;
using runtime::Completion;
using runtime::Done;
using runtime::Task;

bool MetadataClient::Impl::is_fatal(LogErrc code) {
  switch (code) {
    case LogErrc::kUnknown:
    case LogErrc::kUnavailable:
    case LogErrc::kSessionGone:
    case LogErrc::kTailMoved:
    case LogErrc::kFull:
      return false;
    case LogErrc::kWrongLog:
    case LogErrc::kTrimmed:
    case LogErrc::kLocked:
    case LogErrc::kCorrupt:
    case LogErrc::kTooLarge:
    case LogErrc::kSyncFailed:
      break;
  }
  return true;
}

Task<> MetadataClient::Impl::append_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  struct Next {
    std::optional<Proposer::Outgoing> outgoing{};
    LogPosition applied{};
    std::optional<Completion<Done>> wait_for{};  // before there is anything to append
  };
  MonotonicTime started;
  while (!context.stop.stop_requested()) {
    Completion<Done> work = co_await call(runtime.core(), [this] { return core.proposer().work(); });
    co_await runtime::wait_until(work, MonotonicTime::never(), Done{});
    if (context.stop.stop_requested()) break;
    MonotonicTime gather_until = started + kBetweenOffsetCommits;
    Next next = co_await call(runtime.core(), [this, gather_until] {
      if (runtime.now() < gather_until && core.proposer().may_wait())
        return Next{.wait_for = core.proposer().work_that_cannot_wait()};
      core.sent_entry(runtime.now());
      return Next{.outgoing = core.proposer().outgoing(core.state().feature_level(), runtime.wall_now()),
                  .applied = core.state().position()};
    });
    if (next.wait_for) co_await runtime::wait_until(*next.wait_for, gather_until, Done{});
    if (!next.outgoing) continue;

    started = runtime.now();
    auto appended =
        co_await log.append(next.outgoing->key, next.applied, next.outgoing->bytes, next.outgoing->room);
    MonotonicTime answered = runtime.now();
    append_seconds.observe(answered - started);
    if (!appended) {
      append_failures.add();
      if (co_await after_failed_append(next.outgoing->key, appended.error())) break;
      continue;
    }
    appends.add();
    if (log.is_single_writer()) {
      co_await call(runtime.core(),
                    [this, entry = LogEntry{*appended, next.outgoing->bytes}] { core.apply({entry}); });
      apply_seconds.observe(runtime.now() - answered);
      continue;
    }
    // The fate is known when the follower has applied it; until then the same entry is all that may be sent.
    auto applied = co_await call(runtime.core(), [this, key = next.outgoing->key, at = *appended] {
      core.proposer().appended(key);
      return core.applied_up_to(at);
    });
    co_await runtime::wait_until(applied, runtime.now() + kSeeOwnEntryWithin, Done{});
    apply_seconds.observe(runtime.now() - answered);
  }
}

Task<bool> MetadataClient::Impl::after_failed_append(EntryKey key, LogError error) {
  if (is_fatal(error.code)) {
    end_with("the metadata log refuses this broker's entries: " + error.message);
    co_return true;
  }
  switch (error.code) {
    case LogErrc::kUnknown:
    case LogErrc::kUnavailable:
      co_await call(runtime.core(), [this, key] { core.proposer().outcome_unknown(key); });
      co_await runtime::sleep_for(kBackoffMin + Duration(random.below(kBackoffMin.count())));
      co_return false;
    case LogErrc::kSessionGone:
      logger.warn("the session in the metadata log is gone, registering anew", {});
      co_await call(runtime.core(), [this, key] { core.session_lost(key.nonce); });
      co_return false;
    case LogErrc::kTailMoved: {
      auto caught_up = co_await catch_up();
      if (!caught_up) co_await runtime::sleep_for(kBackoffMin);
      co_return false;
    }
    case LogErrc::kFull:
      co_await call(runtime.core(),
                    [this, key, message = error.message] { core.proposer().refused_as_full(key, message); });
      co_await runtime::sleep_for(kFullPause);
      co_return false;
    default:
      co_return false;
  }
}

Task<ProposeResult> MetadataClient::Impl::propose(Command command) {
  Completion<ProposeResult> completion;
  std::vector<Command> commands;
  commands.push_back(std::move(command));
  co_await call(runtime.core(), [this, completion, commands = std::move(commands)]() mutable {
    core.proposer().propose(std::move(commands), completion);
  });
  co_return co_await completion.wait();
}

Task<> MetadataClient::Impl::propose_and_forget(Command command) {
  std::vector<Command> commands;
  commands.push_back(std::move(command));
  co_await call(runtime.core(), [this, commands = std::move(commands)]() mutable {
    core.proposer().propose(std::move(commands), Completion<ProposeResult>());
  });
}

}  // namespace varve::metadata
