#include "metadata/client/client_loops.h"

namespace varve::metadata {
namespace {

constexpr Duration kMembershipInterval = 1s;
constexpr Duration kSeeRegistrationWithin = 2s;

}  // namespace

using runtime::call;
using runtime::Completion;
using runtime::Task;

Task<Result<void, StartError>> MetadataClient::Impl::register_broker() {
  runtime::TaskContext& context = co_await runtime::this_context();
  Duration backoff = kBackoffMin;
  while (!context.stop.stop_requested()) {
    Nonce nonce(random.next() | 1);
    auto result = co_await register_as(nonce);
    if (result && result->incarnation.value() != 0) co_return Result<void, StartError>{};
    // Its session is of no use any more.
    co_await log.end_session(nonce);
    if (result) co_return fail(StartErrc::kLog, result->problem);
    if (is_fatal(result.error().code)) co_return fail(StartErrc::kLog, result.error().message);
    logger.warn("registering failed, trying again", {{"problem", result.error().message}});
    co_await runtime::sleep_for(backoff);
    backoff = longer_backoff(backoff);
  }
  co_return fail(StartErrc::kStopped, "stopped while registering");
}

Task<LogResult<RegistrationResult>> MetadataClient::Impl::register_as(Nonce nonce) {
  runtime::TaskContext& context = co_await runtime::this_context();
  auto session = co_await log.begin_session(nonce);
  if (!session) co_return pass_error(session);
  auto expected = co_await call(runtime.core(), [this, nonce] { return core.expect_registration(nonce); });

  Entry entry;
  entry.nonce = nonce;
  entry.sequence = EntrySequence(1);
  entry.level = kFirstFeatureLevel;
  entry.time = runtime.wall_now();
  entry.commands.push_back(
      RegisterBroker{config.broker, kHighestFeatureLevel, config.endpoints, config.rack});
  Slice bytes = Slice::take(encode_entry(entry));
  EntryKey key{nonce, entry.sequence};
  while (!context.stop.stop_requested()) {
    LogPosition applied = co_await call(runtime.core(), [this] { return core.state().position(); });
    auto appended = co_await log.append(key, applied, bytes, EntryRoom::kReserve);
    if (appended && log.is_single_writer()) {
      co_await call(runtime.core(), [this, own = LogEntry{*appended, bytes}] { core.apply({own}); });
    }
    if (appended) {
      auto seen = co_await call(runtime.core(), [this, at = *appended] { return core.applied_up_to(at); });
      co_await runtime::wait_until(seen, runtime.now() + kSeeRegistrationWithin, runtime::Done{});
      if (expected.is_set()) co_return co_await expected.wait();
      continue;
    }
    switch (appended.error().code) {
      case LogErrc::kUnknown:
      case LogErrc::kUnavailable:
      case LogErrc::kFull:
        co_await runtime::sleep_for(kBackoffMin);
        break;
      case LogErrc::kTailMoved: {
        auto caught_up = co_await catch_up();
        if (!caught_up) co_await runtime::sleep_for(kBackoffMin);
        break;
      }
      case LogErrc::kSessionGone:
        co_await call(runtime.core(), [this, nonce] { core.registration_failed(nonce); });
        co_return pass_error(appended);
      default:
        co_return pass_error(appended);
    }
  }
  co_return fail(LogErrc::kUnavailable, "stopped while registering");
}

Task<> MetadataClient::Impl::registration_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  while (!context.stop.stop_requested()) {
    auto needed = co_await call(runtime.core(), [this] { return core.registration_needed(); });
    co_await runtime::wait_until(needed, MonotonicTime::never(), runtime::Done{});
    if (context.stop.stop_requested()) break;
    Nonce old = core.nonce();
    auto registered = co_await register_broker();
    if (context.stop.stop_requested()) break;
    if (!registered) {
      end_with("registering anew failed: " + registered.error().message);
      break;
    }
    co_await log.end_session(old);
    logger.info("registered anew", {{"incarnation", core.incarnation()}});
  }
}

Task<> MetadataClient::Impl::membership_loop() {
  runtime::TaskContext& context = co_await runtime::this_context();
  uint64_t mismatches_seen = 0;
  while (!context.stop.stop_requested()) {
    // In this order: a session begins before its registration is appended, so a live incarnation of this list
    // whose session is not in the later answer has lost it.
    auto live = co_await call(runtime.core(), [this] { return core.live(); });
    auto sessions = co_await log.sessions();
    if (context.stop.stop_requested()) break;
    if (sessions) {
      auto due = co_await call(
          runtime.core(), [this, live, sessions = *sessions] { return core.fences_due(live, sessions); });
      for (Incarnation incarnation : due) {
        logger.info("fencing a broker without a session", {{"incarnation", incarnation}});
        co_await propose_and_forget(FenceBroker{incarnation});
      }
    }
    auto [mismatches, is_diverged] =
        co_await call(runtime.core(), [this] { return std::pair(core.mismatches(), core.is_diverged()); });
    if (mismatches > mismatches_seen) {
      state_mismatches.add(mismatches - mismatches_seen);
      mismatches_seen = mismatches;
      logger.error(is_diverged
                       ? "states of brokers differ: no snapshots, trimming and deleting until they agree"
                       : "a recorded snapshot is not of this broker's state, and its writer is gone: "
                         "another is taken soon",
                   {});
    }
    auto beat =
        co_await call(runtime.core(), [this] { return core.beat_due(runtime.now(), config.beat_after); });
    if (beat) co_await propose_and_forget(*beat);
    co_await runtime::sleep_for(kMembershipInterval);
  }
}

}  // namespace varve::metadata
