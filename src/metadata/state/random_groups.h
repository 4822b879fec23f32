// For tests: commands about groups that a state answers now and then well and now and then not.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "metadata/state/random_entry.h"
#include "metadata/state/state.h"

namespace varve::metadata {

class RandomGroups {
 public:
  // Both must live as long.
  RandomGroups(const State& state, Random& random) : state_(state), random_(random) {}

  // Mostly about a group that `sender` owns.
  Command command(BrokerId sender, std::vector<PartitionHandle> partitions) {
    partitions_ = std::move(partitions);
    std::string id = any_id(sender);
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        return save(id);
      case 3:
        return delete_offsets(id);
      case 4:
        return DeleteGroup{id, version_of(id), owners()};
      case 5:
        return random_.chance(1, 4)
                   ? Command(SetGroupLimits{random_.chance(1, 9) ? UINT64_MAX : random_.below(5'000)})
                   : Command(expire());
      default:
        return commit(id);
    }
  }

 private:
  std::string any_id(BrokerId sender) {
    std::string id;
    do {
      id = fmt::format("g{}", random_.below(30));
    } while (state_.group_owner(id) != sender && !random_.chance(1, 20));
    return id;
  }
  uint64_t version_of(const std::string& id) {
    const GroupView* group = state_.find_group(id);
    uint64_t version = group == nullptr ? 0 : group->version;
    return random_.chance(1, 12) ? version + random_.below(2) : version;
  }
  uint64_t owners() { return state_.owners_version() - (random_.chance(1, 20) ? 1 : 0); }
  std::string any_member() { return fmt::format("m{}", random_.below(4)); }
  std::optional<std::string> any_instance() {
    return random_.chance(1, 3) ? std::optional(fmt::format("i{}", random_.below(3))) : std::nullopt;
  }

  SaveGroup save(const std::string& id) {
    SaveGroup command = random_save(random_);
    command.group = id;
    command.version = version_of(id);
    command.owners = owners();
    command.generation = static_cast<int32_t>(random_.below(3));
    for (size_t i = 0; i < command.members.size(); ++i) {
      SavedMember& member = command.members[i];
      member.id = fmt::format("m{}", i);
      const GroupView* group = state_.find_group(id);
      bool is_known = group != nullptr && group->members.contains(member.id);
      if (!is_known && !random_.chance(1, 20)) member.details = random_details(random_);
      if (member.details) member.details->instance_id = any_instance();
    }
    if (random_.chance(1, 3)) command.phase = GroupPhase::kStable;
    if (command.phase == GroupPhase::kEmpty && !random_.chance(1, 8)) command.members.clear();
    if (random_.chance(1, 40)) command.members.push_back({"m0", random_details(random_), {}});
    return command;
  }

  CommitOffsets commit(const std::string& id) {
    CommitOffsets command{.group = id, .member = any_member(), .instance_id = any_instance()};
    command.owners = owners();
    const GroupView* group = state_.find_group(id);
    if (group != nullptr && !random_.chance(1, 4)) {
      command.generation = random_.chance(1, 12) ? 7 : group->generation;
      auto member = group->members.find(command.member);
      if (member != group->members.end()) command.instance_id = member->second.details.instance_id;
    } else if (random_.chance(2, 3)) {
      command.member.clear();
      command.instance_id.reset();
    } else {
      command.generation = static_cast<int32_t>(random_.below(3)) - 1;
    }
    if (random_.chance(1, 6)) command.instance_id = any_instance();
    if (random_.chance(1, 4)) command.expires_at = state_.log_time() + random_.between(-3, 9'000);
    for (uint64_t n = random_.below(4); n > 0; --n) {
      command.offsets.push_back({any_partition(), static_cast<int64_t>(random_number(random_)),
                                 static_cast<int32_t>(random_.below(3)) - 1, random_text(random_)});
    }
    return command;
  }

  DeleteOffsets delete_offsets(const std::string& id) {
    DeleteOffsets command{id, version_of(id), {}, owners()};
    for (uint64_t n = random_.below(3); n > 0; --n) command.partitions.push_back(any_partition());
    return command;
  }

  ExpireOffsets expire() {
    int64_t retention = static_cast<int64_t>(state_.group_limits().offsets_retention_ms);
    return {state_.log_time() - retention - random_.between(-1, 10)};
  }

  PartitionHandle any_partition() {
    if (partitions_.empty() || random_.chance(1, 12)) return random_id<PartitionHandle>(random_);
    return partitions_[random_.below(partitions_.size())];
  }

  const State& state_;
  Random& random_;
  std::vector<PartitionHandle> partitions_;
};

}  // namespace varve::metadata
