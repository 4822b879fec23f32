#include "sim/workload/groups.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "protocol/messages/offset_fetch.h"
#include "sim/workload/stray_writer.h"

namespace varve::sim {

using client::TopicPartition;
using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr Duration kWitnessGap = 500ms;
constexpr Duration kStartInterval = 200ms;
// Offsets of one group, by name.
constexpr int16_t kFetchVersionMax = 7;

template <class T, size_t N>
T one_of(Random& random, const std::array<T, N>& choices) {
  return choices[random.below(N)];
}

Duration between(Random& random, Duration low, Duration high) {
  return Duration(random.between(low.count(), high.count()));
}

}  // namespace

std::string served_group(std::string name, std::vector<BrokerId> brokers) {
  brokers.push_back(kStrayBroker);
  while (*rendezvous_owner(hash64(name), brokers) == kStrayBroker) name += "+";
  return name;
}

std::vector<GroupOptions> draw_groups(Random& random, const std::vector<BrokerId>& brokers, bool widens) {
  std::vector<GroupOptions> groups;
  size_t count = 1 + random.below(3);
  for (size_t i = 0; i < count; ++i) {
    GroupOptions options;
    options.name = served_group(fmt::format("group{}", i), brokers);
    options.members = 1 + random.below(3);
    options.are_static = random.chance(1, 3);
    options.topics = {"stamped"};
    // A static leader that comes back does not see what became of a topic meanwhile, as in Kafka: one that changes is not
    // for its group.
    if (!options.are_static || !widens) options.topics.emplace_back("lasting");
    if (!options.are_static && random.chance(1, 3)) options.topics.emplace_back("mortal");
    options.assignor = random.chance(1, 2) ? client::Assignor::kRange : client::Assignor::kCooperativeSticky;
    // Longer than two requests without an answer, or a broker's death alone would cost a member its session.
    options.session_timeout = between(random, 10s, 16s);
    options.rebalance_timeout = between(random, 3s, 10s);
    options.heartbeat_interval = between(random, 300ms, 1500ms);
    options.mean_life = random.chance(1, 4) ? Duration{0} : between(random, 4s, 25s);
    options.commit_per_mille = one_of(random, std::array<uint32_t, 3>{100, 400, 1000});
    groups.push_back(std::move(options));
  }
  return groups;
}

Groups::Groups(WorkloadContext& context, Process& witness, SimNetwork& network,
               const std::vector<GroupOptions>& groups, std::function<const metadata::State&()> tail)
    : context_(context),
      tail_(std::move(tail)),
      history_(context.world, context.topics, context.findings, tail_),
      causes_(context.world, context.findings),
      witness_(context, witness, "group witness") {
  for (const GroupOptions& options : groups) {
    causes_.add(options.name, options.session_timeout, options.rebalance_timeout);
    Group& group = groups_.emplace_back(Group{options, {}});
    for (size_t i = 0; i < options.members; ++i) {
      group.members.push_back(std::make_unique<GroupMember>(context, history_, causes_, network, options, i));
    }
  }
}

void Groups::start() {
  for (Group& group : groups_) start_when_possible(&group);
  if (!groups_.empty()) witness_.scope().spawn(witness_.executor(), "watch groups", ask_often());
}

// Once there is something to read.
void Groups::start_when_possible(Group* group) {
  bool has_topics = std::ranges::all_of(group->options.topics, [this](const std::string& topic) {
    return context_.topics.find_certain(topic) != nullptr;
  });
  if (!has_topics) {
    context_.world.after(kStartInterval, [this, group] { start_when_possible(group); });
    return;
  }
  for (auto& member : group->members) member->start();
}

void Groups::stop() {
  for (Group& group : groups_) {
    for (auto& member : group.members) member->stop();
  }
}

// Asks any broker for what groups have committed; those that do not coordinate them say so.
Task<> Groups::ask_often() {
  for (;;) {
    co_await runtime::sleep_for(between(witness_.random(), 0ms, 2 * kWitnessGap));
    const Group& group = groups_[witness_.random().below(groups_.size())];
    co_await ask(witness_.any_host(), &group.options);
  }
}

Task<> Groups::ask(std::string host, const GroupOptions* group) {
  protocol::OffsetFetchRequest request;
  request.group_id = group->name;
  request.topics.emplace();
  std::set<TopicPartition> partitions;
  for (const std::string& topic : group->topics) partitions.merge(partitions_of(topic));
  for (const TopicPartition& at : partitions) {
    if (request.topics->empty() || request.topics->back().name != at.topic) {
      request.topics->emplace_back().name = at.topic;
    }
    request.topics->back().partition_indexes.push_back(at.partition);
  }
  if (request.topics->empty()) co_return;
  MonotonicTime asked_at = witness_.now();
  int16_t version = witness_.draw_version<protocol::OffsetFetchRequest>(
      protocol::OffsetFetchRequest::kMinVersion, kFetchVersionMax);
  auto response = co_await witness_.ask(host, std::move(request), version);
  if (!response || response->error_code != ErrorCode::kNone) co_return;
  client::GroupOffsets::Committed committed;
  for (const auto& topic : response->topics) {
    for (const auto& row : topic.partitions) {
      if (row.error_code != ErrorCode::kNone) continue;
      auto& position = committed[{topic.name, row.partition_index}];
      if (row.committed_offset.value() >= 0) position = client::CommitPosition{row.committed_offset, -1, ""};
    }
  }
  if (!committed.empty()) context_.world.happened("group.witnessed");
  history_.found(group->name, asked_at, committed, host);
}

std::set<TopicPartition> Groups::lasting_partitions(const GroupOptions& options) const {
  std::set<TopicPartition> partitions;
  for (const std::string& topic : options.topics) {
    if (history_.is_certain(topic)) partitions.merge(partitions_of(topic));
  }
  return partitions;
}

std::set<TopicPartition> Groups::partitions_of(const std::string& topic) const {
  std::set<TopicPartition> partitions;
  const TopicLife* life = context_.topics.find_certain(topic);
  uint32_t count = life == nullptr ? 0 : life->partitions;
  for (uint32_t i = 0; i < count; ++i) partitions.insert({topic, PartitionIndex(static_cast<int32_t>(i))});
  return partitions;
}

bool Groups::is_settled(const Group& group) const {
  std::set<TopicPartition> missing;
  for (const std::string& topic : group.options.topics) missing.merge(partitions_of(topic));
  const metadata::GroupView* view = tail_().find_group(group.options.name);
  bool is_stable = view != nullptr && view->phase == metadata::GroupPhase::kStable &&
                   view->members.size() == group.members.size();
  if (!is_stable) return false;
  std::set<int32_t> generations = {view->generation};
  for (const auto& member : group.members) {
    if (!member->is_in_group()) return false;
    generations.insert(member->consumer()->identity().generation);
    for (const TopicPartition& at : member->consumer()->assignment()) missing.erase(at);
  }
  return missing.empty() && generations.size() == 1;
}

bool Groups::is_settled() const {
  return std::ranges::all_of(groups_, [this](const Group& group) { return is_settled(group); });
}

std::string Groups::behind(const Ends& ends) const {
  std::string text;
  for (const Group& group : groups_) {
    for (const TopicPartition& at : lasting_partitions(group.options)) {
      Offset end = ends.at(at.topic).at(at.partition);
      Offset committed = history_.committed(group.options.name, at).value_or(Offset(0));
      if (committed >= end) continue;
      text += fmt::format("\n  group {} has committed {} of {}, whose end is {}", group.options.name,
                          committed, at.to_string(), end);
    }
  }
  return text;
}

std::string Groups::describe() const {
  std::string text;
  for (const Group& group : groups_) {
    if (is_settled(group)) continue;
    const metadata::GroupView* view = tail_().find_group(group.options.name);
    if (view != nullptr) {
      text += fmt::format("\n  {} in the log: phase {}, generation {}, {} members", view->id,
                          static_cast<int>(view->phase), view->generation, view->members.size());
    }
    for (const auto& member : group.members) text += "\n  " + member->describe();
  }
  return text;
}

Groups::Generations Groups::generations() const {
  Generations generations;
  for (const Group& group : groups_) {
    const client::GroupConsumer* consumer = group.members.front()->consumer();
    if (consumer != nullptr) generations[group.options.name] = consumer->identity().generation;
  }
  return generations;
}

bool Groups::has_committed_since(MonotonicTime when) const {
  return std::ranges::all_of(groups_, [&](const Group& group) {
    return lasting_partitions(group.options).empty() || history_.last_acked(group.options.name) > when;
  });
}

void Groups::check_same(const Generations& before) const {
  Generations after = generations();
  for (const auto& [group, generation] : before) {
    context_.findings.require(after[group] == generation,
                              "group {} went from generation {} to {}, and nothing but its owner had changed",
                              group, generation, after[group]);
  }
}

}  // namespace varve::sim
