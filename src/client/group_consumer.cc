#include "client/group_consumer.h"

#include <algorithm>
#include <iterator>

namespace varve::client {

using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr Duration kUnknownTopicInterval = 1s;
constexpr Duration kLocateTimeout = 30s;

std::set<TopicPartition> without(const std::set<TopicPartition>& from, const std::set<TopicPartition>& what) {
  std::set<TopicPartition> rest;
  std::ranges::set_difference(from, what, std::inserter(rest, rest.end()));
  return rest;
}

}  // namespace

GroupConsumer::GroupConsumer(Cluster& cluster, GroupConsumerOptions options, GroupListener* listener)
    : cluster_(cluster),
      options_(std::move(options)),
      listener_(listener == nullptr ? no_listener_ : *listener),
      membership_(cluster, options_.member, *this),
      offsets_(cluster, options_.member.group, membership_.lane()),
      fetcher_(cluster, options_.fetch) {}

Task<ClientResult<std::vector<ConsumedRecord>>> GroupConsumer::poll(Duration timeout) {
  membership_.begin_call();
  auto records = co_await poll_until(cluster_.now() + timeout);
  membership_.end_call();
  co_return records;
}

Task<ClientResult<std::vector<ConsumedRecord>>> GroupConsumer::poll_until(MonotonicTime until) {
  for (;;) {
    if (membership_.problem()) co_return std::unexpected(*membership_.problem());
    if (membership_.needs_join()) {
      auto joined = co_await rejoin();
      if (!joined) co_return pass_error(joined);
    }
    co_await watch_topics();
    gather_astray();
    auto located = co_await locate();
    if (!located && !located.error().is_retriable()) co_return pass_error(located);
    if (membership_.needs_join()) continue;
    co_await fetcher_.advance();
    std::vector<ConsumedRecord> records = fetcher_.take(options_.records_max);
    if (auto problem = fetcher_.take_problem()) co_return std::unexpected(std::move(*problem));
    runtime::TaskContext& context = co_await runtime::this_context();
    if (context.stop.stop_requested()) co_return failed(ClientErrc::kStopped, "asked to stop");
    if (!records.empty() || cluster_.now() >= until) co_return records;
    // A backoff may end earlier than anything arrives.
    co_await fetcher_.wait(std::min(until, cluster_.now() + cluster_.backoff(1)));
  }
}

std::vector<GroupConsumer::Protocol> GroupConsumer::protocols() {
  Subscription subscription{options_.topics, {}, membership_.identity().generation};
  if (options_.assignor == Assignor::kCooperativeSticky) subscription.owned = owned_;
  return {{std::string(assignor_name(options_.assignor)), encode_subscription(subscription)}};
}

Task<ClientResult<std::map<std::string, Slice>>> GroupConsumer::assign(int32_t generation,
                                                                       std::string protocol,
                                                                       std::vector<Member> members) {
  std::vector<GroupMemberInfo> infos;
  std::set<std::string> topics;
  for (Member& member : members) {
    auto subscription = decode_subscription(member.metadata);
    // As Kafka's clients: a group whose members do not understand one another gets nowhere.
    if (!subscription)
      co_return refused(ErrorCode::kInconsistentGroupProtocol, "the subscription of " + member.id);
    topics.insert(subscription->topics.begin(), subscription->topics.end());
    infos.push_back({std::move(member.id), std::move(member.instance_id), std::move(*subscription)});
  }
  std::map<std::string, uint32_t> partitions;
  for (const std::string& name : topics) {
    auto topic = co_await cluster_.topic(name);
    if (topic)
      partitions[name] = static_cast<uint32_t>(topic->leaders.size());
    else if (!topic.error().is(ErrorCode::kUnknownTopicOrPartition))
      co_return pass_error(topic);
  }
  shared_out_ = partitions;
  Assignor assignor = assignor_of_name(protocol).value_or(options_.assignor);
  std::map<std::string, Slice> shares;
  for (const auto& [member, share] : client::assign(assignor, infos, partitions)) {
    shares[member] = encode_assignment(share);
  }
  listener_.led(generation, infos, shares);
  co_return shares;
}

Task<ClientResult<void>> GroupConsumer::rejoin() {
  if (options_.assignor == Assignor::kRange) co_await give_up(owned_);
  shared_out_.reset();
  auto joined = co_await membership_.join();
  if (!joined) co_return pass_error(joined);
  listener_.joined(membership_.identity(), *joined);
  auto share = decode_assignment(joined->assignment);
  if (!share) co_return failed(ClientErrc::kMalformed, "the leader's assignment cannot be read");
  is_leader_ = joined->is_leader;
  GroupIdentity who = membership_.identity();
  std::set<TopicPartition> going = without(owned_, *share);
  std::set<TopicPartition> coming = without(*share, owned_);
  if (!going.empty()) {
    // Whoever gets them has to wait until they are given up.
    want_rebalance();
    co_await give_up(std::move(going));
  }
  // A heartbeat may have brought the news that it is all over.
  if (membership_.identity() != who) co_return ClientResult<void>();
  ++shares_;
  owned_.insert(coming.begin(), coming.end());
  to_locate_.insert(coming.begin(), coming.end());
  co_await listener_.assigned(std::move(coming));
  co_return ClientResult<void>();
}

void GroupConsumer::want_rebalance() {
  listener_.wants_rebalance();
  membership_.request_rejoin();
}

Task<> GroupConsumer::give_up(std::set<TopicPartition> partitions) {
  if (partitions.empty()) co_return;
  co_await listener_.revoked(partitions);
  ++shares_;
  for (const TopicPartition& at : partitions) {
    owned_.erase(at);
    to_locate_.erase(at);
    to_reset_.erase(at);
    fetcher_.remove(at);
  }
}

void GroupConsumer::lost() {
  if (owned_.empty()) return;
  ++shares_;
  std::set<TopicPartition> partitions = std::exchange(owned_, {});
  to_locate_.clear();
  to_reset_.clear();
  for (const TopicPartition& at : partitions) fetcher_.remove(at);
  listener_.lost(partitions);
}

Task<ClientResult<void>> GroupConsumer::locate() {
  if (!to_locate_.empty()) {
    uint64_t shares = shares_;
    std::set<TopicPartition> asked = to_locate_;
    MonotonicTime asked_at = cluster_.now();
    auto committed = co_await offsets_.fetch(asked, asked_at + kLocateTimeout);
    if (!committed) co_return pass_error(committed);
    if (shares != shares_) co_return ClientResult<void>();
    listener_.found(asked_at, *committed);
    for (const auto& [at, position] : *committed) {
      auto topic = co_await cluster_.topic(at.topic);
      if (shares != shares_) co_return ClientResult<void>();
      if (!topic) continue;
      to_locate_.erase(at);
      if (position)
        fetcher_.put(at, topic->id, position->offset);
      else
        to_reset_.insert(at);
    }
  }
  for (const TopicPartition& at : std::set<TopicPartition>(to_reset_)) {
    auto found = co_await reset(at);
    if (!found) co_return found;
  }
  co_return ClientResult<void>();
}

Task<ClientResult<void>> GroupConsumer::reset(TopicPartition at) {
  if (options_.reset == OffsetReset::kNone) {
    co_return refused(ErrorCode::kOffsetOutOfRange, fmt::format("no position for {}", at.to_string()));
  }
  uint64_t shares = shares_;
  auto topic = co_await cluster_.topic(at.topic);
  if (!topic) co_return pass_error(topic);
  auto offset = co_await fetcher_.find_end(at, options_.reset);
  if (!offset) co_return pass_error(offset);
  if (shares != shares_) co_return ClientResult<void>();
  to_reset_.erase(at);
  fetcher_.put(at, topic->id, *offset);
  co_return ClientResult<void>();
}

void GroupConsumer::gather_astray() {
  Fetcher::Astray astray = fetcher_.take_astray();
  for (const TopicPartition& at : astray.out_of_range) {
    if (owned_.contains(at)) to_reset_.insert(at);
  }
  for (const TopicPartition& at : astray.born_again) {
    if (owned_.contains(at)) to_locate_.insert(at);
  }
}

Task<> GroupConsumer::watch_topics() {
  if (!is_leader_ || cluster_.now() < next_look_) co_return;
  std::map<std::string, uint32_t> partitions;
  bool knows_all = true;
  std::map<std::string, uint32_t> before = shared_out_.value_or(partitions);
  for (const auto& [name, count] : before) partitions[name] = 0;
  for (const std::string& name : options_.topics) partitions[name] = 0;
  for (auto& [name, count] : partitions) {
    auto topic = co_await cluster_.topic(name);
    if (topic) {
      count = static_cast<uint32_t>(topic->leaders.size());
    } else {
      knows_all = false;
      bool is_gone = topic.error().is(ErrorCode::kUnknownTopicOrPartition);
      if (!is_gone && before.contains(name)) count = before[name];
    }
  }
  next_look_ = cluster_.now() + (knows_all ? cluster_.options().metadata_age_max : kUnknownTopicInterval);
  std::erase_if(partitions, [](const auto& entry) { return entry.second == 0; });
  // A static leader that came back finds the assignment of its former life (KIP-814), and takes it for up to date.
  if (!shared_out_) shared_out_ = partitions;
  if (partitions != *shared_out_) want_rebalance();
}

Commits GroupConsumer::positions() const {
  Commits commits;
  for (const TopicPartition& at : owned_) {
    auto position = fetcher_.position(at);
    if (position) commits[at] = {*position, -1, ""};
  }
  return commits;
}

Task<ClientResult<void>> GroupConsumer::commit() {
  Commits commits = positions();
  if (commits.empty()) co_return ClientResult<void>();
  co_return co_await commit(std::move(commits));
}

Task<ClientResult<void>> GroupConsumer::commit(Commits commits) {
  GroupIdentity who = membership_.identity();
  if (who.generation < 0) co_return refused(ErrorCode::kUnknownMemberId, "not in the group");
  membership_.begin_call();
  auto done = co_await offsets_.commit(who, std::move(commits), cluster_.now() + options_.commit_timeout);
  membership_.end_call();
  if (!done && done.error().cause == ClientErrc::kRefused) membership_.heard(done.error().kafka, who);
  co_return done;
}

Task<> GroupConsumer::close() {
  co_await membership_.leave();
  co_await membership_.close();
  co_await fetcher_.close();
}

}  // namespace varve::client
