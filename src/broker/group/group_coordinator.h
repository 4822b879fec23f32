// GroupCoordinator: what handlers ask about consumer groups.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "broker/group/group_table.h"

namespace varve::broker {

struct CommitAnswer {
  GroupErrc error = GroupErrc::kNone;
  std::vector<uint32_t> unknown{};  // indexes of offsets whose partition is gone
};

struct DeleteOffsetsAnswer {
  GroupErrc error = GroupErrc::kNone;
  std::set<std::string> subscribed{};
};

// Syncs with the log where an answer has to be certain, hops to the core, and waits there. Every answer is Kafka's; the
// codes that it gives to a client that has to come back, here or elsewhere, are those that clients of every age
// understand for that request.
//
// Life: construct, start() when the broker has joined the log, co_await stop() before the metadata client stops, destroy.
// Owned by the broker.
class GroupCoordinator {
 public:
  GroupCoordinator(runtime::Runtime& runtime, metadata::MetadataClient& client, BrokerId broker,
                   GroupConfig config, const Logger& logger, MetricRegistry& metrics);

  // Core only: the metadata client's applied listener.
  void on_applied(const metadata::ApplyOutcome& outcome) { table_.on_applied(outcome); }
  // Any io task, once.
  runtime::Task<> start();
  // Any io task, once: answers everybody who waits.
  runtime::Task<> stop();

  // Any io task. `deadline` ends syncs and commits; joins and syncs of members wait for their group.
  runtime::Task<JoinAnswer> join(JoinRequest request, MonotonicTime deadline);
  runtime::Task<SyncAnswer> sync(SyncRequest request, MonotonicTime deadline);
  runtime::Task<GroupErrc> heartbeat(HeartbeatRequest request, MonotonicTime deadline);
  runtime::Task<LeaveAnswer> leave(LeaveRequest request, MonotonicTime deadline);
  runtime::Task<CommitAnswer> commit(CommitRequest request, MonotonicTime deadline);
  // Of each group what the broker has applied: to be asked after a sync.
  runtime::Task<std::vector<FetchedOffsets>> offsets(std::vector<OffsetQuery> queries);
  // One answer for each.
  runtime::Task<std::vector<DescribedGroup>> describe(std::vector<std::string> groups,
                                                      MonotonicTime deadline);
  runtime::Task<Result<std::vector<ListedGroup>, GroupErrc>> list(MonotonicTime deadline);
  // One answer for each.
  runtime::Task<std::vector<GroupErrc>> remove(std::vector<std::string> groups, MonotonicTime deadline);
  runtime::Task<DeleteOffsetsAnswer> delete_offsets(OffsetDeletion request, MonotonicTime deadline);

 private:
  runtime::Task<> set_limits(metadata::SetGroupLimits limits);
  // False: this broker cannot tell anything of now.
  runtime::Task<bool> sync_with_log(MonotonicTime deadline);
  runtime::Task<GroupProposals> propose_commit(std::shared_ptr<const CommitRequest> request, Judged judged,
                                               MonotonicTime deadline);
  runtime::Task<GroupErrc> remove_one(std::string group, runtime::Completion<GroupProposals> started,
                                      MonotonicTime deadline);

  runtime::Runtime& runtime_;
  metadata::MetadataClient& client_;
  const GroupConfig config_;
  const Logger logger_;
  runtime::TaskScope scope_;
  GroupTable table_;
};

}  // namespace varve::broker
