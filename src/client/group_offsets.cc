#include "client/group_offsets.h"

#include "protocol/messages/offset_commit.h"
#include "protocol/messages/offset_fetch.h"

namespace varve::client {

using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr int16_t kFirstCommitById = 10;
constexpr int16_t kFirstFetchById = 10;

const std::string& topic_of(const TopicPartition& at) { return at.topic; }
const std::string& topic_of(const Commits::value_type& commit) { return commit.first.topic; }

// One request's rows by topic: those of one topic lie together, because the partitions are ordered.
template <class Topics>
auto& topic_row(Topics& topics, const std::string& name) {
  if (topics.empty() || topics.back().name != name) topics.emplace_back().name = name;
  return topics.back();
}

template <class Ids>
std::map<Uuid, std::string> names_of(const Ids& ids) {
  std::map<Uuid, std::string> names;
  for (const auto& [name, id] : ids) names[id] = name;
  return names;
}

template <class Row>
const std::string& name_of(const Row& row, const std::map<Uuid, std::string>& names) {
  auto found = names.find(row.topic_id);
  return found == names.end() ? row.name : found->second;
}

template <class Row>
std::optional<CommitPosition> position_of(const Row& row) {
  // -1: none (Kafka's INVALID_OFFSET).
  if (row.committed_offset.value() < 0) return std::nullopt;
  return CommitPosition{row.committed_offset, row.committed_leader_epoch, row.metadata.value_or("")};
}

}  // namespace

template <class Partitions>
Task<GroupOffsets::Ids> GroupOffsets::ids_of(const Partitions& partitions) {
  Ids ids;
  for (const auto& entry : partitions) {
    if (ids.contains(topic_of(entry))) continue;
    auto topic = co_await cluster_.topic(topic_of(entry));
    if (!topic || topic->id.is_zero()) co_return Ids();
    ids[topic_of(entry)] = topic->id;
  }
  co_return ids;
}

Task<bool> GroupOffsets::may_try_again(const ClientError& error, size_t tries, MonotonicTime deadline) {
  if (!error.is_retriable()) co_return false;
  bool is_elsewhere = error.is(ErrorCode::kNotCoordinator) || error.is(ErrorCode::kCoordinatorNotAvailable);
  if (is_elsewhere || error.leaves_doubt()) cluster_.forget_coordinator(group_);
  MonotonicTime next = cluster_.now() + cluster_.backoff(tries);
  if (next >= deadline) co_return false;
  co_return co_await runtime::sleep_until(next) == runtime::Wake::kTimeReached;
}

Task<ClientResult<void>> GroupOffsets::commit(GroupIdentity who, Commits commits, MonotonicTime deadline) {
  for (size_t tries = 0;; ++tries) {
    auto done = co_await commit_once(who, commits);
    if (done || !co_await may_try_again(done.error(), tries, deadline)) co_return done;
  }
}

Task<ClientResult<void>> GroupOffsets::commit_once(const GroupIdentity& who, const Commits& commits) {
  Ids ids = co_await ids_of(commits);
  protocol::OffsetCommitRequest request;
  request.group_id = group_;
  request.generation_id_or_member_epoch = who.generation;
  request.member_id = who.member_id;
  request.group_instance_id = who.instance_id;
  for (const auto& [at, position] : commits) {
    auto& topic = topic_row(request.topics, at.topic);
    if (!ids.empty()) topic.topic_id = ids[at.topic];
    auto& row = topic.partitions.emplace_back();
    row.partition_index = at.partition;
    row.committed_offset = position.offset;
    row.committed_leader_epoch = position.leader_epoch;
    row.committed_metadata = position.metadata;
  }
  // Version 7 brings the instance id.
  VersionRange versions{.low = static_cast<int16_t>(who.instance_id ? 7 : 2)};
  if (ids.empty()) versions.high = kFirstCommitById - 1;
  auto response = co_await cluster_.ask_coordinator(group_, std::move(request), {lane_, versions});
  if (!response) co_return pass_error(response);
  size_t rows = 0;
  for (const auto& topic : response->topics) {
    for (const auto& row : topic.partitions) {
      ++rows;
      if (row.error_code == ErrorCode::kNone) continue;
      // By id an old one is learnt only from the answer.
      for (const auto& [name, id] : ids) cluster_.forget_topic(name);
      co_return refused(row.error_code, fmt::format("OffsetCommit of group {}", group_));
    }
  }
  if (rows != commits.size())
    co_return failed(ClientErrc::kMalformed, "OffsetCommit answers other partitions");
  co_return ClientResult<void>();
}

Task<ClientResult<GroupOffsets::Committed>> GroupOffsets::fetch(std::set<TopicPartition> partitions,
                                                                MonotonicTime deadline) {
  for (size_t tries = 0;; ++tries) {
    auto committed = co_await fetch_once(partitions);
    if (committed || !co_await may_try_again(committed.error(), tries, deadline)) co_return committed;
  }
}

Task<ClientResult<GroupOffsets::Committed>> GroupOffsets::fetch_once(
    const std::set<TopicPartition>& partitions) {
  Ids ids = co_await ids_of(partitions);
  protocol::OffsetFetchRequest request;
  request.group_id = group_;
  request.topics.emplace();
  auto& group = request.groups.emplace_back();
  group.group_id = group_;
  group.topics.emplace();
  for (const TopicPartition& at : partitions) {
    topic_row(*request.topics, at.topic).partition_indexes.push_back(at.partition);
    auto& topic = topic_row(*group.topics, at.topic);
    if (!ids.empty()) topic.topic_id = ids[at.topic];
    topic.partition_indexes.push_back(at.partition);
  }
  request.require_stable = true;
  VersionRange versions;
  if (ids.empty()) versions.high = kFirstFetchById - 1;
  auto response = co_await cluster_.ask_coordinator(group_, std::move(request), {lane_, versions});
  if (!response) co_return pass_error(response);

  std::map<Uuid, std::string> names = names_of(ids);
  Committed committed;
  ErrorCode error = response->error_code;
  auto read = [&](const std::string& name, const auto& row) {
    if (row.error_code != ErrorCode::kNone && error == ErrorCode::kNone) error = row.error_code;
    committed[{name, row.partition_index}] = position_of(row);
  };
  for (const auto& topic : response->topics) {
    for (const auto& row : topic.partitions) read(topic.name, row);
  }
  for (const auto& answer : response->groups) {
    if (answer.error_code != ErrorCode::kNone) error = answer.error_code;
    for (const auto& topic : answer.topics) {
      for (const auto& row : topic.partitions) read(name_of(topic, names), row);
    }
  }
  if (error != ErrorCode::kNone) {
    for (const auto& [name, id] : ids) cluster_.forget_topic(name);
    co_return refused(error, fmt::format("OffsetFetch of group {}", group_));
  }
  if (committed.size() != partitions.size()) {
    co_return failed(ClientErrc::kMalformed, "OffsetFetch answers other partitions");
  }
  co_return committed;
}

}  // namespace varve::client
