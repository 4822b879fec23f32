#include "sim/workload/simple_group.h"

#include "protocol/messages/delete_groups.h"
#include "sim/workload/cluster_options.h"

namespace varve::sim {

using client::Commits;
using client::TopicPartition;
using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr Duration kRequestTimeout = 4s;
constexpr Duration kLookGap = 400ms;
constexpr uint32_t kDeletePerMille = 150;

}  // namespace

SimpleGroup::SimpleGroup(WorkloadContext& context, Process& process, GroupHistory& history,
                         SimpleGroupOptions options)
    : client_(context, process, "simple consumer"),
      history_(history),
      options_(std::move(options)),
      cluster_(process, client_.executor(),
               cluster_options(context, client_.name(), kRequestTimeout, client_.random())),
      offsets_(cluster_, options_.name) {}

void SimpleGroup::start() {
  client_.scope().spawn(client_.executor(), "commit as nobody", change_loop());
  client_.scope().spawn(client_.executor(), "look for offsets", look_loop());
}

// Of one topic: an answer about one that is gone says nothing of others.
std::set<TopicPartition> SimpleGroup::some_partitions() {
  std::set<TopicPartition> partitions;
  const std::string& topic = options_.topics[client_.random().below(options_.topics.size())];
  const TopicLife* life = client_.context().topics.find_certain(topic);
  uint32_t count = life == nullptr ? 0 : life->partitions;
  for (uint32_t i = 0; i < count; ++i) {
    if (client_.random().chance(2, 3)) partitions.insert({topic, PartitionIndex(static_cast<int32_t>(i))});
  }
  return partitions;
}

Task<> SimpleGroup::change_loop() {
  while (!client_.context().is_over) {
    co_await runtime::sleep_for(Duration(client_.random().between(0, 2 * options_.mean_gap.count())));
    if (client_.context().is_over) break;
    if (client_.random().chance(kDeletePerMille, 1000)) {
      co_await destroy();
    } else {
      co_await commit();
    }
  }
  is_finished_ = true;
}

Task<> SimpleGroup::commit() {
  Commits commits;
  // Unlike all others, so that what is found can be told apart.
  for (const TopicPartition& at : some_partitions()) {
    commits[at] = {Offset(static_cast<int64_t>(client_.random().below(1 << 30))), -1, ""};
  }
  if (commits.empty()) co_return;
  uint64_t number = history_.committing(options_.name, {}, commits);
  auto done = co_await offsets_.commit({}, std::move(commits), cluster_.now());
  if (done) client_.context().world.happened("group.committed_by_nobody");
  history_.answered(number, done ? CommitAnswer::kAcked : CommitAnswer::kUnknown);
}

Task<> SimpleGroup::destroy() {
  protocol::DeleteGroupsRequest request;
  request.groups_names = {options_.name};
  uint64_t number = history_.deleting(options_.name);
  auto response = co_await cluster_.ask_coordinator(options_.name, std::move(request));
  std::optional<ErrorCode> code;
  if (response && !response->results.empty()) code = response->results.front().error_code;
  CommitAnswer answer = CommitAnswer::kUnknown;
  if (code == ErrorCode::kNone) {
    answer = CommitAnswer::kAcked;
    client_.context().world.happened("group.deleted");
  } else if (code == ErrorCode::kGroupIdNotFound) {
    answer = CommitAnswer::kRefused;
  } else {
    cluster_.forget_coordinator(options_.name);
  }
  client_.context().findings.require(code != ErrorCode::kNonEmptyGroup, "group {} is said to have members",
                                     options_.name);
  history_.deletion_answered(number, answer);
}

Task<> SimpleGroup::look_loop() {
  for (;;) {
    co_await runtime::sleep_for(Duration(client_.random().between(0, 2 * kLookGap.count())));
    std::set<TopicPartition> partitions = some_partitions();
    if (partitions.empty()) continue;
    MonotonicTime asked_at = client_.now();
    auto committed = co_await offsets_.fetch(std::move(partitions), asked_at);
    if (committed) history_.found(options_.name, asked_at, *committed, client_.name());
  }
}

}  // namespace varve::sim
