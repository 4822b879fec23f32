// GroupOffsets: the committed offsets of a group, for its members and for anybody else.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/cluster.h"

namespace varve::client {

// Who commits. The default is nobody in particular, which a group without members accepts.
struct GroupIdentity {
  std::string member_id;
  std::optional<std::string> instance_id;
  int32_t generation = -1;

  bool operator==(const GroupIdentity&) const = default;
};

struct CommitPosition {
  Offset offset;  // of the next record to be read
  int32_t leader_epoch = -1;
  std::string metadata;
};
using Commits = std::map<TopicPartition, CommitPosition>;

// Life: beside its cluster, same executor.
class GroupOffsets {
 public:
  GroupOffsets(Cluster& cluster, std::string group, Lane lane = Lane::kShared)
      : cluster_(cluster), group_(std::move(group)), lane_(lane) {}

  // Tries again after errors that pass, until `deadline`. The error of the first partition that was refused; then others
  // may have been stored. leaves_doubt(): all may have been.
  runtime::Task<ClientResult<void>> commit(GroupIdentity who, Commits commits, MonotonicTime deadline);

  // The committed offsets; nullopt where there is none. Waits for open transactions (KIP-447). As above.
  using Committed = std::map<TopicPartition, std::optional<CommitPosition>>;
  runtime::Task<ClientResult<Committed>> fetch(std::set<TopicPartition> partitions, MonotonicTime deadline);

 private:
  using Ids = std::map<std::string, Uuid>;

  runtime::Task<ClientResult<void>> commit_once(const GroupIdentity& who, const Commits& commits);
  runtime::Task<ClientResult<Committed>> fetch_once(const std::set<TopicPartition>& partitions);
  // Of all topics, or empty if some id is not known: then topics are named.
  template <class Partitions>
  runtime::Task<Ids> ids_of(const Partitions& partitions);
  // Whether to try again, after a pause; forgets what the error shows to be old.
  runtime::Task<bool> may_try_again(const ClientError& error, size_t tries, MonotonicTime deadline);

  Cluster& cluster_;
  const std::string group_;
  const Lane lane_;
};

}  // namespace varve::client
