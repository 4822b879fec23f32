#include "sim/checkers/group_history.h"

#include <algorithm>

namespace varve::sim {

using client::GroupIdentity;
using client::TopicPartition;
using metadata::GroupPhase;

namespace {

std::string text_of(std::optional<Offset> offset) { return offset ? fmt::format("{}", *offset) : "none"; }

const std::string& key_of(const std::string& member, const std::optional<std::string>& instance) {
  return instance ? *instance : member;
}

}  // namespace

bool GroupHistory::is_certain(const std::string& topic) const {
  bool is_there = false;
  for (const auto& [id, life] : topics_.lives()) {
    if (life.name != topic) continue;
    if (!life.is_certain()) return false;
    is_there = true;
  }
  return is_there;
}

uint64_t GroupHistory::committing(const std::string& group, const GroupIdentity& who,
                                  const client::Commits& commits) {
  Commit commit{.group = group, .generation = who.generation, .offsets = {}, .sent = world_.now()};
  for (const auto& [at, position] : commits) {
    commit.offsets[at] = position.offset;
    commits_of_[{group, at}].push_back(commits_.size());
  }
  commits_.push_back(std::move(commit));
  return commits_.size() - 1;
}

void GroupHistory::answered(uint64_t number, CommitAnswer answer) {
  Commit& commit = commits_.at(number);
  commit.answer = answer;
  if (answer == CommitAnswer::kUnknown) return;
  commit.ended = world_.now();
  if (answer != CommitAnswer::kAcked) return;
  last_acked_[commit.group] = world_.now();
  for (auto at = generations_.upper_bound({commit.group, commit.generation});
       commit.generation >= 0 && at != generations_.end() && at->first.first == commit.group; ++at) {
    findings_.require(
        at->second.joined_at >= commit.sent,
        "a commit of group {} was acknowledged in generation {}, but a member was in {} before it",
        commit.group, commit.generation, at->first.second);
  }
  check_stored(commit);
}

uint64_t GroupHistory::deleting(const std::string& group) {
  deletions_.emplace_back(group, Deletion{.sent = world_.now()});
  return deletions_.size() - 1;
}

void GroupHistory::deletion_answered(uint64_t number, CommitAnswer answer) {
  Deletion& deletion = deletions_.at(number).second;
  deletion.answer = answer;
  if (answer != CommitAnswer::kUnknown) deletion.ended = world_.now();
}

std::vector<GroupHistory::Deletion> GroupHistory::deletions_of(const std::string& group,
                                                               const std::string& topic) const {
  std::vector<Deletion> all;
  for (const auto& [id, deletion] : deletions_) {
    if (id == group && deletion.answer != CommitAnswer::kRefused) all.push_back(deletion);
  }
  for (const auto& [id, life] : topics_.lives()) {
    if (life.name != topic || life.is_certain()) continue;
    bool is_acked = life.deletion_acked != MonotonicTime::never();
    all.push_back({.sent = life.deletion_asked,
                   .ended = life.deletion_acked,
                   .answer = is_acked ? CommitAnswer::kAcked : CommitAnswer::kNone});
  }
  return all;
}

// What was acknowledged lies in the log.
void GroupHistory::check_stored(const Commit& commit) const {
  if (!tail_) return;
  const metadata::State& state = tail_();
  const metadata::GroupView* group = state.find_group(commit.group);
  for (const auto& [at, offset] : commit.offsets) {
    const TopicLife* life = is_certain(at.topic) ? topics_.find_certain(at.topic) : nullptr;
    const metadata::TopicView* topic = life == nullptr ? nullptr : state.find_topic(life->id);
    if (topic == nullptr) continue;
    PartitionHandle handle = topic->partitions.at(static_cast<size_t>(at.partition.value()));
    std::optional<Offset> stored;
    if (group != nullptr && group->offsets.contains(handle))
      stored = Offset(group->offsets.at(handle).offset);
    check_offset(commit.group, world_.now(), at, stored, "the log");
  }
}

bool GroupHistory::is_replaced(const Commit& commit, const TopicPartition& at, MonotonicTime asked_at) const {
  const std::vector<size_t>& all = commits_of_.at({commit.group, at});
  return std::ranges::any_of(all, [&](size_t number) {
    const Commit& other = commits_[number];
    if (other.answer != CommitAnswer::kAcked || other.ended > asked_at || &other == &commit) return false;
    // Whatever became of it, in the log it comes before everything of a later generation.
    bool is_older = commit.generation >= 0 && commit.generation < other.generation;
    return is_older || commit.ended < other.sent;
  });
}

void GroupHistory::check_offset(const std::string& group, MonotonicTime asked_at, const TopicPartition& at,
                                std::optional<Offset> offset, const std::string& who) const {
  auto known = commits_of_.find({group, at});
  std::vector<size_t> none;
  const std::vector<size_t>& all = known == commits_of_.end() ? none : known->second;
  std::vector<Deletion> deletions = deletions_of(group, at.topic);
  bool may_be = false;
  if (offset) {
    may_be = std::ranges::any_of(all, [&](size_t number) {
      const Commit& commit = commits_[number];
      bool is_it = commit.answer != CommitAnswer::kRefused && commit.offsets.at(at) == *offset;
      bool is_gone = std::ranges::any_of(deletions, [&](const Deletion& deletion) {
        return deletion.answer == CommitAnswer::kAcked && commit.ended < deletion.sent &&
               deletion.ended <= asked_at;
      });
      return is_it && !is_gone && !is_replaced(commit, at, asked_at);
    });
  } else {
    may_be = std::ranges::none_of(all, [&](size_t number) {
      const Commit& commit = commits_[number];
      bool may_be_gone = std::ranges::any_of(
          deletions, [&](const Deletion& deletion) { return deletion.ended >= commit.sent; });
      return commit.answer == CommitAnswer::kAcked && commit.ended <= asked_at && !may_be_gone;
    });
  }
  findings_.require(may_be, "{} has {} as the committed offset of group {} in {}; acknowledged last: {}", who,
                    text_of(offset), group, at.to_string(), text_of(committed(group, at)));
}

void GroupHistory::found(const std::string& group, MonotonicTime asked_at,
                         const client::GroupOffsets::Committed& committed, const std::string& who) {
  for (const auto& [at, position] : committed) {
    check_offset(group, asked_at, at, position ? std::optional(position->offset) : std::nullopt, who);
  }
}

void GroupHistory::led(const std::string& group, int32_t generation, const Members& members,
                       const Shares& shares) {
  Generation& known = generations_[{group, generation}];
  std::set<std::string> names;
  for (const auto& [id, instance] : members) names.insert(key_of(id, instance));
  findings_.require(known.members.empty() || known.members == names,
                    "generation {} of group {} has {} members, and had {} others before", generation, group,
                    names.size(), known.members.size());
  known.members = std::move(names);
  Sharing sharing;
  sharing.by_member = shares;
  for (const auto& [id, instance] : members) {
    auto share = shares.find(id);
    if (instance && share != shares.end()) sharing.by_instance[*instance] = share->second;
  }
  known.sharings.push_back(std::move(sharing));
  if (!tail_) return;
  const metadata::GroupView* view = tail_().find_group(group);
  findings_.require(view != nullptr && view->generation >= generation,
                    "a member leads generation {} of group {}, and the log has {}", generation, group,
                    view == nullptr ? 0 : view->generation);
}

void GroupHistory::joined(const std::string& group, const GroupIdentity& who, const Slice& share) {
  Generation& generation = generations_[{group, who.generation}];
  generation.joined_at = std::min(generation.joined_at, world_.now());
  // A leader that had no answer may have shared out twice; only one of it took effect.
  std::erase_if(generation.sharings, [&](const Sharing& sharing) {
    auto own = sharing.by_member.find(who.member_id);
    if (own != sharing.by_member.end()) return own->second != share;
    // A static member that came back under a new id has what its instance had.
    if (!who.instance_id) return true;
    auto of_instance = sharing.by_instance.find(*who.instance_id);
    return of_instance == sharing.by_instance.end() || of_instance->second != share;
  });
  findings_.require(!generation.sharings.empty(),
                    "member {} of group {} was given {} bytes in generation {}, which no leader wrote for it",
                    who.member_id, group, share.size(), who.generation);
  std::set<TopicPartition> share_of = client::decode_assignment(share).value_or(std::set<TopicPartition>());
  for (const TopicPartition& at : share_of) {
    const std::string& key = key_of(who.member_id, who.instance_id);
    auto [owner, is_first] = generation.owners.try_emplace(at, key);
    findings_.require(is_first || owner->second == key,
                      "{} belongs to {} and to {} in generation {} of group {}", at.to_string(),
                      owner->second, key, who.generation, group);
  }
  check_stored(group, who, share);
}

// The share lies in the log, unless the group has moved on.
void GroupHistory::check_stored(const std::string& group, const GroupIdentity& who,
                                const Slice& share) const {
  if (!tail_) return;
  const metadata::GroupView* view = tail_().find_group(group);
  bool is_past = view != nullptr &&
                 (view->generation > who.generation ||
                  (view->generation == who.generation && view->phase == GroupPhase::kPreparingRebalance));
  if (is_past) return;
  bool is_there = view != nullptr && view->generation == who.generation && view->phase == GroupPhase::kStable;
  findings_.require(is_there,
                    "member {} has its share of generation {} of group {}, which the log does not have",
                    who.member_id, who.generation, group);
  if (!is_there) return;
  auto member = view->members.find(who.member_id);
  // It may have left, or been replaced, since.
  if (member == view->members.end()) return;
  findings_.require(member->second.assignment == as_text(share.view()),
                    "member {} of group {} has another share of generation {} than the log", who.member_id,
                    group, who.generation);
}

MonotonicTime GroupHistory::last_acked(const std::string& group) const {
  auto found = last_acked_.find(group);
  return found == last_acked_.end() ? MonotonicTime() : found->second;
}

std::optional<Offset> GroupHistory::committed(const std::string& group, const TopicPartition& at) const {
  auto known = commits_of_.find({group, at});
  if (known == commits_of_.end()) return std::nullopt;
  const Commit* last = nullptr;
  for (size_t number : known->second) {
    const Commit& commit = commits_[number];
    if (commit.answer == CommitAnswer::kAcked && (last == nullptr || commit.ended >= last->ended))
      last = &commit;
  }
  return last == nullptr ? std::nullopt : std::optional(last->offsets.at(at));
}

}  // namespace varve::sim
