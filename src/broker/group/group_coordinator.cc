#include "broker/group/group_coordinator.h"

#include <algorithm>
#include <utility>

namespace varve::broker {
namespace {

using runtime::Completion;
using runtime::Task;

// Of an entry that another one has overtaken.
constexpr int kAttemptsMax = 3;

// Until the log takes what it has once refused.
constexpr Duration kLimitsRetryInterval = 30s;

GroupErrc failure_of(metadata::ProposeErrc cause) {
  return cause == metadata::ProposeErrc::kFull ? GroupErrc::kCoordinatorNotAvailable
                                               : GroupErrc::kNotCoordinator;
}

// Runs `each(i)` on the core for 0 to `count` - 1, `at_once` in one job, so that others have their turn in between.
template <class Each>
Task<> for_each_on_core(runtime::Runtime& runtime, size_t count, size_t at_once, Each each) {
  for (size_t begin = 0; begin < count; begin += at_once) {
    co_await runtime::call(runtime.core(), [&each, begin, end = std::min(count, begin + at_once)] {
      for (size_t i = begin; i < end; ++i) each(i);
    });
  }
}

// Waits for what the core's function gives to the completion that it gets; `otherwise` at the deadline, or when the
// client is gone.
template <class Answer, class Function>
Task<Answer> ask(runtime::Runtime& runtime, MonotonicTime deadline, Answer otherwise, Function function) {
  Completion<Answer> done;
  runtime.core().post([function = std::move(function), done]() mutable { function(done); });
  co_return co_await runtime::wait_until(done, deadline, std::move(otherwise));
}

Task<metadata::ProposeResult> await_one(Completion<metadata::ProposeResult> waiting, MonotonicTime deadline) {
  metadata::ProposeResult late =
      fail(metadata::ProposeErrc::kFull, "the metadata log did not answer in time");
  co_return co_await runtime::wait_until(waiting, deadline, std::move(late));
}

struct Settled {
  GroupErrc error = GroupErrc::kNone;
  std::vector<uint32_t> unknown{};  // of a commit: which of its offsets are of no partition
  bool is_stale = false;            // the group may have changed, or had another owner, meanwhile
};

Task<Settled> await_proposals(GroupProposals proposals, MonotonicTime deadline) {
  Settled settled{.error = proposals.error};
  for (size_t i = 0; i < proposals.waiting.size(); ++i) {
    metadata::ProposeResult result = co_await await_one(proposals.waiting[i], deadline);
    GroupErrc error = result ? error_of(result->front().verdict) : failure_of(result.error().code);
    if (result) {
      const metadata::CommandOutcome& outcome = result->front();
      // Only commits name a generation.
      bool is_absent = error == GroupErrc::kIllegalGeneration && outcome.group_version == 0;
      if (is_absent) error = GroupErrc::kGroupIdNotFound;
      for (uint32_t index : outcome.unknown_partitions) {
        settled.unknown.push_back(proposals.first_offsets[i] + index);
      }
      if (outcome.verdict == metadata::CommandVerdict::kStaleGroup) settled.is_stale = true;
    }
    if (settled.error == GroupErrc::kNone) settled.error = error;
  }
  co_return settled;
}

}  // namespace

GroupCoordinator::GroupCoordinator(runtime::Runtime& runtime, metadata::MetadataClient& client,
                                   BrokerId broker, GroupConfig config, const Logger& logger,
                                   MetricRegistry& metrics)
    : runtime_(runtime),
      client_(client),
      config_(config),
      logger_(logger.component("groups")),
      table_(runtime, client, broker, config, logger_, metrics, scope_) {}

Task<> GroupCoordinator::start() {
  co_await runtime::call(runtime_.core(), [this] { table_.start(); });
  if (!config_.offsets_retention) co_return;
  auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(*config_.offsets_retention);
  metadata::SetGroupLimits limits{.offsets_retention_ms = static_cast<uint64_t>(milliseconds.count())};
  scope_.spawn(runtime_.io(0), "set the limits of groups", set_limits(limits));
}

Task<> GroupCoordinator::set_limits(metadata::SetGroupLimits limits) {
  for (runtime::Wake wake = runtime::Wake::kTimeReached; wake == runtime::Wake::kTimeReached;) {
    bool is_set = co_await runtime::call(runtime_.core(),
                                         [this, limits] { return client_.state().group_limits() == limits; });
    if (is_set) co_return;
    Completion<metadata::ProposeResult> done;
    runtime_.core().post([this, limits, done] { client_.propose({limits}, done); });
    metadata::ProposeResult result = co_await await_one(done, MonotonicTime::never());
    if (result && result->front().verdict == metadata::CommandVerdict::kDone) co_return;
    logger_.warn("offsets.retention.minutes is not in force yet",
                 {{"cause", result ? "refused" : result.error().message}});
    wake = co_await runtime::sleep_for(kLimitsRetryInterval);
  }
}

Task<> GroupCoordinator::stop() {
  co_await runtime::call(runtime_.core(), [this] { table_.stop(); });
  co_await scope_.close();
}

Task<bool> GroupCoordinator::sync_with_log(MonotonicTime deadline) {
  if (!client_.has_progress()) co_return false;
  auto synced = co_await client_.sync(deadline);
  co_return synced.has_value();
}

Task<JoinAnswer> GroupCoordinator::join(JoinRequest request, MonotonicTime deadline) {
  std::string member = request.member;
  Duration session = std::chrono::milliseconds(request.session_timeout_ms);
  if (request.group.empty()) co_return JoinAnswer::of(GroupErrc::kInvalidGroupId, member);
  if (session < config_.session_timeout_min || session > config_.session_timeout_max) {
    co_return JoinAnswer::of(GroupErrc::kInvalidSessionTimeout, member);
  }
  if (!co_await sync_with_log(deadline))
    co_return JoinAnswer::of(GroupErrc::kCoordinatorNotAvailable, member);
  co_return co_await ask<JoinAnswer>(
      runtime_, MonotonicTime::never(), JoinAnswer::of(GroupErrc::kNotCoordinator, member),
      [this, request = std::move(request)](auto done) mutable { table_.join(std::move(request), done); });
}

Task<SyncAnswer> GroupCoordinator::sync(SyncRequest request, MonotonicTime deadline) {
  if (request.group.empty()) co_return SyncAnswer::of(GroupErrc::kInvalidGroupId);
  auto shared = std::make_shared<SyncRequest>(std::move(request));
  SyncAnswer answer;
  for (bool is_certain : {false, true}) {
    if (is_certain && !co_await sync_with_log(deadline)) {
      co_return SyncAnswer::of(GroupErrc::kCoordinatorNotAvailable);
    }
    answer = co_await ask<SyncAnswer>(
        runtime_, MonotonicTime::never(), SyncAnswer::of(GroupErrc::kNotCoordinator),
        [this, shared, is_certain](auto done) { table_.sync(*shared, is_certain, done); });
    if (answer.error != GroupErrc::kUncertain) break;
  }
  co_return answer;
}

Task<GroupErrc> GroupCoordinator::heartbeat(HeartbeatRequest request, MonotonicTime deadline) {
  if (request.group.empty()) co_return GroupErrc::kInvalidGroupId;
  auto shared = std::make_shared<const HeartbeatRequest>(std::move(request));
  GroupErrc error = GroupErrc::kNone;
  for (bool is_certain : {false, true}) {
    if (is_certain && !co_await sync_with_log(deadline)) co_return GroupErrc::kCoordinatorNotAvailable;
    error = co_await ask<GroupErrc>(
        runtime_, deadline, GroupErrc::kCoordinatorNotAvailable,
        [this, shared, is_certain](auto done) { table_.heartbeat(*shared, is_certain, done); });
    if (error != GroupErrc::kUncertain) break;
  }
  co_return error;
}

Task<LeaveAnswer> GroupCoordinator::leave(LeaveRequest request, MonotonicTime deadline) {
  if (request.group.empty()) co_return LeaveAnswer::of(GroupErrc::kInvalidGroupId);
  if (!co_await sync_with_log(deadline)) co_return LeaveAnswer::of(GroupErrc::kCoordinatorNotAvailable);
  co_return co_await ask<LeaveAnswer>(
      runtime_, deadline, LeaveAnswer::of(GroupErrc::kCoordinatorNotAvailable),
      [this, request = std::move(request)](auto done) { table_.leave(request, done); });
}

Task<GroupProposals> GroupCoordinator::propose_commit(std::shared_ptr<const CommitRequest> request,
                                                      Judged judged, MonotonicTime deadline) {
  // What was proposed before has been applied here a moment ago.
  for (bool is_certain = judged.owners != 0;; is_certain = true) {
    GroupProposals proposals = co_await ask<GroupProposals>(
        runtime_, deadline, GroupProposals{.error = GroupErrc::kCoordinatorNotAvailable},
        [this, request, is_certain, judged](auto done) { table_.commit(request, is_certain, judged, done); });
    if (proposals.error != GroupErrc::kUncertain) co_return proposals;
    judged = proposals.judged;
    if (!co_await sync_with_log(deadline)) {
      co_return GroupProposals{.error = GroupErrc::kCoordinatorNotAvailable};
    }
  }
}

Task<CommitAnswer> GroupCoordinator::commit(CommitRequest request, MonotonicTime deadline) {
  auto shared = std::make_shared<const CommitRequest>(std::move(request));
  Settled settled;
  Judged judged;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    GroupProposals proposals = co_await propose_commit(shared, judged, deadline);
    judged = proposals.judged;
    settled = co_await await_proposals(std::move(proposals), deadline);
    if (!settled.is_stale) break;
  }
  co_return CommitAnswer{.error = settled.error, .unknown = std::move(settled.unknown)};
}

Task<std::vector<FetchedOffsets>> GroupCoordinator::offsets(std::vector<OffsetQuery> queries) {
  std::vector<FetchedOffsets> all;
  all.reserve(queries.size());
  co_await for_each_on_core(runtime_, queries.size(), config_.groups_per_job,
                            [this, &queries, &all](size_t i) {
                              FetchedOffsets& fetched = all.emplace_back(table_.offsets(queries[i]));
                              // Consumers before 3.9 know no other way to be told to come back.
                              if (fetched.error == GroupErrc::kCoordinatorNotAvailable)
                                fetched.error = GroupErrc::kNotCoordinator;
                            });
  co_return all;
}

Task<std::vector<DescribedGroup>> GroupCoordinator::describe(std::vector<std::string> groups,
                                                             MonotonicTime deadline) {
  std::vector<Completion<DescribedGroup>> waiting(groups.size());
  bool is_certain = co_await sync_with_log(deadline);
  if (is_certain) {
    co_await for_each_on_core(
        runtime_, groups.size(), config_.groups_per_job,
        [this, &groups, &waiting](size_t i) { table_.describe(groups[i], waiting[i]); });
  }
  std::vector<DescribedGroup> described;
  for (const auto& one : waiting) {
    DescribedGroup late{.error = GroupErrc::kCoordinatorNotAvailable};
    if (is_certain) {
      described.push_back(co_await runtime::wait_until(one, deadline, std::move(late)));
    } else {
      described.push_back(std::move(late));
    }
  }
  co_return described;
}

Task<Result<std::vector<ListedGroup>, GroupErrc>> GroupCoordinator::list(MonotonicTime deadline) {
  if (!co_await sync_with_log(deadline)) co_return std::unexpected(GroupErrc::kCoordinatorNotAvailable);
  co_return co_await runtime::call(runtime_.core(), [this] { return table_.list(); });
}

Task<GroupErrc> GroupCoordinator::remove_one(std::string group, Completion<GroupProposals> started,
                                             MonotonicTime deadline) {
  Settled settled;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    GroupProposals late{.error = GroupErrc::kCoordinatorNotAvailable};
    GroupProposals proposals = co_await runtime::wait_until(started, deadline, std::move(late));
    Judged judged = proposals.judged;
    settled = co_await await_proposals(std::move(proposals), deadline);
    if (!settled.is_stale) break;
    started = Completion<GroupProposals>();
    runtime_.core().post([this, group, judged, started] { table_.remove(group, judged, started); });
  }
  co_return settled.error;
}

Task<std::vector<GroupErrc>> GroupCoordinator::remove(std::vector<std::string> groups,
                                                      MonotonicTime deadline) {
  std::vector<GroupErrc> errors;
  if (!co_await sync_with_log(deadline)) {
    errors.assign(groups.size(), GroupErrc::kCoordinatorNotAvailable);
    co_return errors;
  }
  // Many at once, so that they share entries.
  std::vector<Completion<GroupProposals>> started(groups.size());
  co_await for_each_on_core(
      runtime_, groups.size(), config_.groups_per_job,
      [this, &groups, &started](size_t i) { table_.remove(groups[i], {}, started[i]); });
  for (size_t i = 0; i < groups.size(); ++i) {
    errors.push_back(co_await remove_one(groups[i], started[i], deadline));
  }
  co_return errors;
}

Task<DeleteOffsetsAnswer> GroupCoordinator::delete_offsets(OffsetDeletion request, MonotonicTime deadline) {
  if (request.group.empty()) co_return DeleteOffsetsAnswer{.error = GroupErrc::kInvalidGroupId};
  if (!co_await sync_with_log(deadline)) {
    co_return DeleteOffsetsAnswer{.error = GroupErrc::kCoordinatorNotAvailable};
  }
  auto shared = std::make_shared<const OffsetDeletion>(std::move(request));
  DeleteOffsetsAnswer answer;
  Judged judged;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    DeletionStart start = co_await ask<DeletionStart>(
        runtime_, deadline, DeletionStart{.proposals = {.error = GroupErrc::kCoordinatorNotAvailable}},
        [this, shared, judged](auto done) { table_.delete_offsets(shared, judged, done); });
    judged = start.proposals.judged;
    Settled settled = co_await await_proposals(std::move(start.proposals), deadline);
    answer.error = settled.error;
    answer.subscribed = std::move(start.subscribed);
    if (!settled.is_stale) break;
  }
  co_return answer;
}

}  // namespace varve::broker
