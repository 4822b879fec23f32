// What clients ask of groups.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "broker/group/group_table.h"
#include "protocol/consumer_protocol.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;
using runtime::Completion;

// Of one CommitOffsets, and partitions of one DeleteOffsets. A request may hold more than an entry does, which is nothing
// to look for another coordinator for.
constexpr size_t kCommitBytesMax = 128 * 1024;
constexpr size_t kDeletedMax = 32 * 1024;

DescribedGroup described(const Group& group) {
  DescribedGroup described;
  described.phase = group.phase();
  described.protocol_type = group.protocol_type();
  if (group.phase() == GroupPhase::kStable) described.protocol = group.protocol().value_or("");
  for (const auto& [id, member] : group.members()) {
    described.members.push_back({id, member.details, member.assignment});
  }
  return described;
}

DescribedGroup described(const metadata::GroupView& view) {
  DescribedGroup described;
  described.phase = view.phase;
  described.protocol_type = view.protocol_type;
  return described;
}

// Kafka's: the client's id, or the instance's, and a random UUID. An id is a string of the protocol, which bounds it.
std::string fresh_member_id(std::string prefix, Random& random) {
  constexpr size_t kPrefixBytesMax = 32'767 - 37;
  if (prefix.size() > kPrefixBytesMax) prefix.resize(kPrefixBytesMax);
  Uuid uuid = random.uuid();
  std::string hex = to_hex(uuid.bytes);
  return fmt::format("{}-{}-{}-{}-{}-{}", prefix, hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

std::vector<metadata::CommitOffsets> commit_commands(const CommitRequest& request,
                                                     const metadata::State& state) {
  int64_t log_time = state.log_time();
  metadata::CommitOffsets head;
  head.owners = state.owners_version();
  head.group = request.group;
  head.generation = request.generation;
  head.member = request.member.id;
  head.instance_id = request.member.instance;
  if (request.retention_ms != -1) {
    int64_t kept_ms =
        std::clamp<int64_t>(request.retention_ms, 0, std::numeric_limits<int64_t>::max() - log_time);
    head.expires_at = log_time + kept_ms;
  }
  std::vector<metadata::CommitOffsets> commands;
  metadata::CommitOffsets part = head;
  size_t bytes = 0;
  for (const metadata::OffsetCommit& offset : request.offsets) {
    bytes += sizeof(offset) + offset.metadata.size();
    part.offsets.push_back(offset);
    if (bytes < kCommitBytesMax) continue;
    commands.emplace_back(std::exchange(part, head));
    bytes = 0;
  }
  if (!part.offsets.empty()) commands.emplace_back(std::move(part));
  return commands;
}

std::vector<metadata::DeleteOffsets> delete_commands(metadata::DeleteOffsets command) {
  std::vector<PartitionHandle> partitions = std::exchange(command.partitions, {});
  std::ranges::sort(partitions);
  auto repeated = std::ranges::unique(partitions);
  partitions.erase(repeated.begin(), repeated.end());
  std::vector<metadata::DeleteOffsets> commands;
  for (PartitionHandle partition : partitions) {
    if (commands.empty() || commands.back().partitions.size() == kDeletedMax) commands.push_back(command);
    commands.back().partitions.push_back(partition);
  }
  return commands;
}

}  // namespace

GroupTable::Entry* GroupTable::find_usable(std::string_view id, GroupErrc& error, Judged judged) {
  error = admit(id);
  if (is_overtaken(id, judged)) error = GroupErrc::kNotCoordinator;
  if (error != GroupErrc::kNone) return nullptr;
  Entry* entry = find(id);
  if (entry != nullptr && !keep(*entry)) entry = find(id);
  // The walk may not have come to it yet.
  if (entry == nullptr && walk_.is_on) {
    reload(std::string(id));
    entry = find(id);
  }
  if (entry == nullptr || !entry->is_in_limbo) return entry;
  error = GroupErrc::kCoordinatorNotAvailable;
  return nullptr;
}

bool GroupTable::is_overtaken(std::string_view id, Judged judged) {
  bool was_looked_at = judged.owners != 0;
  return was_looked_at && (!has_owned_since(id, judged.owners) || changes_of(id) != judged.changes);
}

uint64_t& GroupTable::changes_of(std::string_view id) { return changes_.at(hash64(id) % changes_.size()); }

Judged GroupTable::note_change(std::string_view id) {
  ++changes_of(id);
  return judge(id);
}

Judged GroupTable::judge(std::string_view id) {
  return {.owners = client_.state().owners_version(), .changes = changes_of(id)};
}

template <class Request>
GroupTable::Entry* GroupTable::find_of_member(const Request& request, bool is_certain, GroupErrc& error) {
  Entry* entry = find_usable(request.group, error);
  if (error != GroupErrc::kNone) return nullptr;
  error =
      entry == nullptr ? GroupErrc::kUnknownMember : entry->group.check(request.member, request.generation);
  if (error == GroupErrc::kNone || is_certain) return entry;
  error = GroupErrc::kUncertain;
  return nullptr;
}

template <class Answer>
void GroupTable::answer_when_saved(Entry& entry, const Completion<Answer>& done, Answer answer) {
  hold(entry, [done, answer = std::move(answer)](GroupErrc failure) mutable {
    if constexpr (std::is_same_v<Answer, GroupErrc>) {
      done.set(failure == GroupErrc::kNone ? answer : failure);
    } else {
      done.set(failure == GroupErrc::kNone ? std::move(answer) : Answer{.error = failure});
    }
  });
  settle(entry);
}

void GroupTable::join(JoinRequest request, Completion<JoinAnswer> done) {
  GroupErrc error = GroupErrc::kNone;
  Entry* entry = find_usable(request.group, error);
  // Only who comes without an id makes a group.
  if (error == GroupErrc::kNone && entry == nullptr && !request.member.empty() &&
      client_.state().find_group(request.group) == nullptr) {
    error = GroupErrc::kUnknownMember;
  }
  if (error != GroupErrc::kNone) {
    done.set(JoinAnswer::of(error, request.member));
    return;
  }
  if (entry == nullptr) entry = open(request.group);
  if (entry == nullptr) {
    done.set(JoinAnswer::of(GroupErrc::kCoordinatorNotAvailable, request.member));
    return;
  }
  if (request.member.empty()) {
    request.fresh_id = fresh_member_id(request.instance.value_or(request.client_id), random_);
  }
  request.bytes_room = bytes_room();
  entry->group.join(
      std::move(request), [done](JoinAnswer answer) { done.set(std::move(answer)); }, runtime_.now());
  settle(*entry);
}

void GroupTable::sync(SyncRequest& request, bool is_certain, Completion<SyncAnswer> done) {
  GroupErrc error = GroupErrc::kNone;
  Entry* entry = find_of_member(request, is_certain, error);
  if (entry == nullptr) {
    done.set(SyncAnswer::of(error));
    return;
  }
  request.bytes_room = bytes_room();
  entry->group.sync(
      std::move(request), [done](SyncAnswer answer) { done.set(std::move(answer)); }, runtime_.now());
  settle(*entry);
}

void GroupTable::heartbeat(const HeartbeatRequest& request, bool is_certain, Completion<GroupErrc> done) {
  GroupErrc error = GroupErrc::kNone;
  Entry* entry = find_of_member(request, is_certain, error);
  if (entry == nullptr) {
    done.set(error);
    return;
  }
  error = entry->group.heartbeat(request.member, request.generation, runtime_.now());
  answer_when_saved(*entry, done, error);
}

void GroupTable::leave(const LeaveRequest& request, Completion<LeaveAnswer> done) {
  GroupErrc error = GroupErrc::kNone;
  Entry* entry = find_usable(request.group, error);
  if (entry == nullptr) {
    LeaveAnswer answer = LeaveAnswer::of(error);
    if (error == GroupErrc::kNone) answer.members.assign(request.members.size(), GroupErrc::kUnknownMember);
    done.set(std::move(answer));
    return;
  }
  LeaveAnswer answer;
  answer.members = entry->group.leave(request.members, runtime_.now());
  answer_when_saved(*entry, done, std::move(answer));
}

void GroupTable::commit(std::shared_ptr<const CommitRequest> request, bool is_certain, Judged judged,
                        Completion<GroupProposals> done) {
  GroupErrc error = GroupErrc::kNone;
  Entry* entry = find_usable(request->group, error);
  if (error == GroupErrc::kNone) {
    bool is_stored = client_.state().find_group(request->group) != nullptr;
    error = check_commit(entry == nullptr ? nullptr : &entry->group, is_stored, request->member,
                         request->generation);
    if (error != GroupErrc::kNone && !is_certain) {
      // It is looked at again after a while, in which its client may have sent another one.
      done.set({.error = GroupErrc::kUncertain, .judged = judge(request->group)});
      return;
    }
    if (error == GroupErrc::kNone && is_overtaken(request->group, judged)) {
      done.set({.error = GroupErrc::kNotCoordinator});
      return;
    }
  }
  if (entry == nullptr) {
    if (error != GroupErrc::kNone) {
      done.set({.error = error});
      return;
    }
  } else if (error != GroupErrc::kNone) {
    return answer_when_saved(*entry, done, GroupProposals{.error = error});
  } else if (!entry->is_clean()) {
    return when_clean(*entry, [this, request, judged, done](GroupErrc failure) {
      if (failure == GroupErrc::kNone) return commit(request, true, judged, done);
      done.set({.error = failure});
    });
  } else {
    entry->group.committed(request->member, runtime_.now());
    arm(*entry);
  }
  GroupProposals proposals{.judged = note_change(request->group)};
  uint32_t first = 0;
  for (metadata::CommitOffsets& command : commit_commands(*request, client_.state())) {
    proposals.first_offsets.push_back(first);
    first += static_cast<uint32_t>(command.offsets.size());
    std::vector<metadata::Command> commands;
    commands.emplace_back(std::move(command));
    client_.propose(std::move(commands), proposals.waiting.emplace_back());
  }
  done.set(std::move(proposals));
}

FetchedOffsets GroupTable::offsets(const OffsetQuery& query) const {
  FetchedOffsets fetched;
  fetched.error = admit(query.group);
  const metadata::GroupView* view = client_.state().find_group(query.group);
  if (fetched.error != GroupErrc::kNone || view == nullptr) return fetched;
  auto add = [&](PartitionHandle handle, const metadata::CommittedOffset& committed) {
    auto partition = client_.state().partition(handle);
    if (partition) fetched.offsets.push_back({partition->topic, partition->index, committed});
  };
  if (!query.partitions) {
    for (const auto& [handle, committed] : view->offsets) add(handle, committed);
    return fetched;
  }
  for (PartitionHandle handle : *query.partitions) {
    auto found = view->offsets.find(handle);
    if (found != view->offsets.end()) add(handle, found->second);
  }
  return fetched;
}

void GroupTable::describe(const std::string& id, Completion<DescribedGroup> done) {
  GroupErrc error = GroupErrc::kNone;
  Entry* entry = find_usable(id, error);
  if (entry != nullptr) return answer_when_saved(*entry, done, described(entry->group));
  const metadata::GroupView* view = client_.state().find_group(id);
  if (error == GroupErrc::kNone && view == nullptr) error = GroupErrc::kGroupIdNotFound;
  done.set(error == GroupErrc::kNone ? described(*view) : DescribedGroup{.error = error});
}

std::vector<ListedGroup> GroupTable::list() const {
  std::vector<ListedGroup> listed;
  auto is_known = [this](const Entry& entry) { return !entry.is_in_limbo && is_kept(entry); };
  for (const auto& [id, entry] : entries_) {
    if (is_known(entry)) listed.push_back({id, entry.group.protocol_type(), entry.group.phase()});
  }
  for (const auto& [id, view] : client_.state().groups()) {
    auto known = entries_.find(id);
    bool is_listed = known != entries_.end() && is_known(known->second);
    if (!is_listed && owns(id)) listed.push_back({id, view.protocol_type, view.phase});
  }
  return listed;
}

void GroupTable::remove(const std::string& id, Judged judged, Completion<GroupProposals> done) {
  GroupErrc error = GroupErrc::kNone;
  Entry* entry = find_usable(id, error, judged);
  const metadata::GroupView* view = client_.state().find_group(id);
  if (error == GroupErrc::kNone && entry == nullptr && view == nullptr) error = GroupErrc::kGroupIdNotFound;
  if (entry != nullptr && entry->group.phase() != GroupPhase::kEmpty) {
    return answer_when_saved(*entry, done, GroupProposals{.error = GroupErrc::kNonEmptyGroup});
  }
  if (entry != nullptr && !entry->is_clean()) {
    return when_clean(*entry, [this, id, judged, done](GroupErrc failure) {
      if (failure == GroupErrc::kNone) return remove(id, judged, done);
      done.set({.error = failure});
    });
  }
  GroupProposals proposals{.error = error};
  if (error == GroupErrc::kNone && view != nullptr) {
    proposals.judged = note_change(id);
    std::vector<metadata::Command> commands;
    commands.emplace_back(
        metadata::DeleteGroup{.group = id, .version = view->version, .owners = proposals.judged.owners});
    client_.propose(std::move(commands), proposals.waiting.emplace_back());
  }
  // Ids that were given out lapse with it.
  if (entry != nullptr) erase(*entry);
  done.set(std::move(proposals));
}

void GroupTable::delete_offsets(std::shared_ptr<const OffsetDeletion> request, Judged judged,
                                Completion<DeletionStart> done) {
  DeletionStart start;
  GroupErrc& error = start.proposals.error;
  Entry* entry = find_usable(request->group, error, judged);
  if (entry != nullptr && !entry->is_clean()) {
    return when_clean(*entry, [this, request, judged, done](GroupErrc failure) {
      if (failure == GroupErrc::kNone) return delete_offsets(request, judged, done);
      done.set({.proposals = {.error = failure}});
    });
  }
  const metadata::GroupView* view = client_.state().find_group(request->group);
  bool has_members = entry != nullptr && entry->group.phase() != GroupPhase::kEmpty;
  if (error == GroupErrc::kNone && entry == nullptr && view == nullptr) error = GroupErrc::kGroupIdNotFound;
  if (has_members && entry->group.protocol_type() != protocol::kConsumerProtocolType)
    error = GroupErrc::kNonEmptyGroup;
  if (error != GroupErrc::kNone) {
    done.set(std::move(start));
    return;
  }
  start.proposals.judged = note_change(request->group);
  std::optional<std::set<std::string>> read;
  if (has_members) read = entry->group.subscribed_topics();
  metadata::DeleteOffsets command;
  for (const auto& [topic, partitions] : request->topics) {
    // Who cannot be read may be reading anything.
    if (has_members && (!read || read->contains(topic))) {
      start.subscribed.insert(topic);
    } else {
      command.partitions.insert(command.partitions.end(), partitions.begin(), partitions.end());
    }
  }
  if (view != nullptr) {
    command.group = request->group;
    command.version = view->version;
    command.owners = start.proposals.judged.owners;
    for (metadata::DeleteOffsets& part : delete_commands(std::move(command))) {
      std::vector<metadata::Command> commands;
      commands.emplace_back(std::move(part));
      client_.propose(std::move(commands), start.proposals.waiting.emplace_back());
    }
  }
  done.set(std::move(start));
}

}  // namespace varve::broker
