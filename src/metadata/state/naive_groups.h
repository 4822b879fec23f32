// For tests: consumer groups in the most naive way there is, as a part of NaiveModel.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "metadata/state/entry.h"
#include "metadata/state/outcome.h"

namespace varve::metadata {

struct NaiveAnswer {
  uint64_t version = 0;
  std::vector<uint32_t> unknown;
};

class NaiveGroups {
 public:
  struct Offset {
    int64_t offset = 0;
    int32_t leader_epoch = 0;
    std::string metadata;
    int64_t commit_time = 0;
    int64_t expires_at = -1;
  };
  struct Member {
    MemberDetails details;
    std::string assignment;
  };
  struct Group {
    uint64_t version = 0;
    SaveGroup saved;  // without its members
    int64_t phase_since = 0;
    std::map<std::string, Member> members;
    std::map<uint32_t, Offset> offsets;
  };
  using Answer = NaiveAnswer;

  std::map<std::string, Group> groups;
  uint64_t versions = 0;
  uint64_t retention = 604'800'000;
  // What the model knows where a command applies.
  int64_t log_time = 0;
  std::set<int32_t> live;
  uint64_t comings_and_goings = 0;  // of brokers
  std::set<uint32_t> partitions;
  std::optional<Answer> answer;  // of the newest command that was not kNotCoordinator

  CommandVerdict run(int32_t sender, const SaveGroup& c) { return answered(sender, c); }
  CommandVerdict run(int32_t sender, const CommitOffsets& c) { return answered(sender, c); }
  CommandVerdict run(int32_t sender, const DeleteOffsets& c) { return answered(sender, c); }
  CommandVerdict run(int32_t sender, const DeleteGroup& c) { return answered(sender, c); }
  CommandVerdict run(int32_t, const SetGroupLimits& c) {
    if (c.offsets_retention_ms > INT64_MAX) return V::kRefused;
    retention = c.offsets_retention_ms;
    return V::kDone;
  }
  CommandVerdict run(int32_t, const ExpireOffsets& c) {
    if (c.cut_off > log_time - static_cast<int64_t>(retention)) return V::kRefused;
    for (auto& [id, group] : groups) {
      if (!group.members.empty() || group.saved.phase != GroupPhase::kEmpty) continue;
      std::erase_if(group.offsets, [&](const auto& one) {
        const Offset& offset = one.second;
        if (offset.expires_at != -1) return log_time >= offset.expires_at;
        bool is_old = offset.commit_time < c.cut_off;
        return group.saved.protocol_type.empty() ? is_old : is_old && group.phase_since < c.cut_off;
      });
    }
    std::erase_if(groups, [](const auto& named) {
      const Group& group = named.second;
      return group.members.empty() && group.saved.phase == GroupPhase::kEmpty && group.offsets.empty();
    });
    return V::kDone;
  }
  void forget_partition(uint32_t partition) {
    for (auto& [id, group] : groups) group.offsets.erase(partition);
  }

 private:
  using V = CommandVerdict;

  template <class C>
  V answered(int32_t sender, const C& c) {
    if (owner_of(c.group) != sender) return V::kNotCoordinator;
    answer.emplace();
    V verdict = c.owners == comings_and_goings ? judge(c) : V::kStaleGroup;
    if (groups.count(c.group) != 0) answer->version = groups[c.group].version;
    return verdict;
  }

  int32_t owner_of(const std::string& id) const {
    int32_t best = *live.begin();
    for (int32_t broker : live) {
      auto weight = [&](int32_t of) { return rendezvous_weight(hash64(id), static_cast<uint64_t>(of)); };
      if (weight(broker) > weight(best)) best = broker;
    }
    return best;
  }
  uint64_t version_of(const std::string& id) const {
    auto group = groups.find(id);
    return group == groups.end() ? 0 : group->second.version;
  }

  V judge(const SaveGroup& c) {
    if (c.version != version_of(c.group)) return V::kStaleGroup;
    std::map<std::string, Member> members;
    for (const SavedMember& m : c.members) {
      const Member* before = nullptr;
      if (c.version != 0 && groups[c.group].members.count(m.id) != 0) before = &groups[c.group].members[m.id];
      if (before == nullptr && !m.details) return V::kRefused;
      if (!members.empty() && m.id <= members.rbegin()->first) return V::kRefused;
      members[m.id] = before == nullptr ? Member{} : *before;
      if (m.details) members[m.id].details = *m.details;
      if (m.assignment) members[m.id].assignment = *m.assignment;
    }
    if (c.phase == GroupPhase::kEmpty && !members.empty()) return V::kRefused;
    Group& group = groups[c.group];
    if (group.version == 0 || group.saved.phase != c.phase) group.phase_since = log_time;
    group.version = ++versions;
    group.saved = c;
    group.saved.members.clear();
    group.members = members;
    return V::kDone;
  }

  V judge(const CommitOffsets& c) {
    bool is_there = groups.count(c.group) != 0;
    if (!is_there && c.generation >= 0) return V::kIllegalGeneration;
    bool is_simple = c.generation < 0 && (!is_there || groups[c.group].saved.phase == GroupPhase::kEmpty);
    if (!is_simple) {
      const Group& group = groups[c.group];
      if (c.generation < 0 && c.member.empty() && !c.instance_id) return V::kUnknownMember;
      if (c.instance_id) {
        std::vector<std::string> holders;
        for (const auto& [id, member] : group.members) {
          if (member.details.instance_id == c.instance_id) holders.push_back(id);
        }
        if (holders.empty()) return V::kUnknownMember;
        if (std::find(holders.begin(), holders.end(), c.member) == holders.end()) return V::kFencedInstance;
      }
      if (group.members.count(c.member) == 0) return V::kUnknownMember;
      if (c.generation != group.saved.generation) return V::kIllegalGeneration;
      if (group.saved.phase == GroupPhase::kCompletingRebalance) return V::kRebalanceInProgress;
    }
    for (uint32_t i = 0; i < c.offsets.size(); ++i) {
      const OffsetCommit& o = c.offsets[i];
      if (partitions.count(o.partition.value()) == 0) {
        answer->unknown.push_back(i);
        continue;
      }
      Group& group = groups[c.group];
      if (group.version == 0) {
        group.version = ++versions;
        group.phase_since = log_time;
      }
      group.offsets[o.partition.value()] = {o.offset, o.leader_epoch, o.metadata, log_time,
                                            c.expires_at < 0 ? -1 : c.expires_at};
    }
    return V::kDone;
  }

  V judge(const DeleteOffsets& c) {
    if (c.version != version_of(c.group)) return V::kStaleGroup;
    if (c.version == 0) return V::kUnknownGroup;
    for (PartitionHandle handle : c.partitions) groups[c.group].offsets.erase(handle.value());
    return V::kDone;
  }

  V judge(const DeleteGroup& c) {
    if (c.version != version_of(c.group)) return V::kStaleGroup;
    if (c.version == 0) return V::kUnknownGroup;
    if (groups[c.group].saved.phase != GroupPhase::kEmpty) return V::kNonEmptyGroup;
    groups.erase(c.group);
    return V::kDone;
  }
};

}  // namespace varve::metadata
