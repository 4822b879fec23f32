#include "sim/workload/group_member.h"

#include <algorithm>

#include "sim/workload/cluster_options.h"

namespace varve::sim {

using client::ClientErrc;
using client::GroupIdentity;
using client::TopicPartition;
using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr Duration kPollTime = 400ms;
constexpr Duration kRequestTimeout = 3s;
constexpr Duration kIdleCommitInterval = 2s;
constexpr size_t kRecordsMax = 40;

// What says for sure that nothing of a commit is stored.
bool says_not_stored(const client::ClientError& error) {
  return error.is(ErrorCode::kUnknownMemberId) || error.is(ErrorCode::kIllegalGeneration) ||
         error.is(ErrorCode::kFencedInstanceId) || error.is(ErrorCode::kRebalanceInProgress);
}

// What may befall a member that does nothing wrong. A request of its former life may come after its own and fence it.
bool is_expected(const client::ClientError& error) {
  return error.is_retriable() || error.cause == ClientErrc::kStopped ||
         error.is(ErrorCode::kFencedInstanceId);
}

client::GroupConsumerOptions consumer_options(const GroupOptions& group, size_t number) {
  client::GroupConsumerOptions options;
  options.member.group = group.name;
  if (group.are_static) options.member.instance_id = fmt::format("{}-instance-{}", group.name, number);
  options.member.session_timeout = group.session_timeout;
  options.member.rebalance_timeout = group.rebalance_timeout;
  options.member.heartbeat_interval = group.heartbeat_interval;
  options.topics = group.topics;
  options.assignor = group.assignor;
  options.reset = client::OffsetReset::kEarliest;
  options.fetch.wait_max = 500ms;
  options.records_max = kRecordsMax;
  // One request each, so that every try is in the history.
  options.commit_timeout = 0s;
  return options;
}

// Writes down what befalls a member.
class Scribe final : public client::GroupListener {
 public:
  Scribe(WorkloadContext& context, GroupHistory& history, GroupCauses& causes, std::string group,
         std::string who)
      : context_(context),
        history_(history),
        causes_(causes),
        group_(std::move(group)),
        who_(std::move(who)) {}

  void wants_rebalance() override { causes_.wants_rebalance(group_); }
  void asks(protocol::ApiKey api, const GroupIdentity& who) override { causes_.asks(group_, api, who); }
  void answered(const client::MembershipAnswer& answer) override {
    context_.world.trace("{} as {} in generation {} of {}: {} to {}", who_, answer.who.member_id,
                         answer.who.generation, group_,
                         answer.error ? protocol::error_name(*answer.error) : "no answer",
                         protocol::api_info(answer.api).name);
    causes_.answered(group_, answer);
  }

  void lost(const std::set<TopicPartition>& partitions) override {
    context_.world.happened("group.partitions_lost");
    context_.world.trace("{} loses {} partitions of {}", who_, partitions.size(), group_);
  }
  void joined(const GroupIdentity& who, const client::Membership::Joined& joined) override {
    context_.world.trace("{} is {} in generation {} of {}", who_, who.member_id, who.generation, group_);
    history_.joined(group_, who, joined.assignment);
  }
  void led(int32_t generation, const std::vector<client::GroupMemberInfo>& members,
           const std::map<std::string, Slice>& shares) override {
    GroupHistory::Members names;
    for (const client::GroupMemberInfo& member : members) names[member.id] = member.instance_id;
    context_.world.happened("group.led");
    history_.led(group_, generation, names, shares);
  }
  void found(MonotonicTime asked_at, const client::GroupOffsets::Committed& committed) override {
    history_.found(group_, asked_at, committed, who_);
    for (const auto& [at, position] : committed) next_[at] = position ? position->offset : Offset(0);
  }
  // Where the member has to go on; nullopt: it was never told.
  std::optional<Offset>& next(const TopicPartition& at) { return next_[at]; }

 private:
  WorkloadContext& context_;
  GroupHistory& history_;
  GroupCauses& causes_;
  const std::string group_;
  const std::string who_;
  std::map<TopicPartition, std::optional<Offset>> next_;
};

}  // namespace

struct GroupMember::Program {
  Program(GroupMember& member, uint64_t life_in)
      : life(life_in),
        random(member.random_.fork()),
        scribe(member.context_, member.history_, member.causes_, member.options_.name, member.host()),
        cluster(member.node_.process(), member.node_.process().io(0),
                cluster_options(member.context_, member.host(), kRequestTimeout, random)),
        consumer(cluster, consumer_options(member.options_, member.number_), &scribe) {}

  const uint64_t life;
  Random random;
  Scribe scribe;
  client::Cluster cluster;
  client::GroupConsumer consumer;
  bool is_leaving = false;
  bool oversleeps = false;
  MonotonicTime next_commit;
  runtime::TaskScope scope;  // first to go
};

GroupMember::GroupMember(WorkloadContext& context, GroupHistory& history, GroupCauses& causes,
                         SimNetwork& network, GroupOptions options, size_t number)
    : context_(context),
      history_(history),
      causes_(causes),
      options_(std::move(options)),
      number_(number),
      random_(context.world.random().fork()),
      node_(context.world, {.host = fmt::format("{}-member{}", options_.name, number), .io_count = 1},
            &network) {}

GroupMember::~GroupMember() { stop(); }

void GroupMember::stop() {
  ++lives_;
  if (node_.is_up()) node_.crash(CrashKind::kKilled);
  program_.reset();
}

void GroupMember::boot() {
  if (!node_.is_up()) node_.boot();
  make();
}

void GroupMember::make() {
  program_ = std::make_unique<Program>(*this, ++lives_);
  program_->scope.spawn(node_.process().io(0), "group member", run(program_.get()));
  schedule_trouble();
}

// The next life begins some time after this one.
void GroupMember::end_life() {
  uint64_t life = ++lives_;
  if (node_.is_up()) node_.crash(CrashKind::kKilled);
  program_.reset();
  Duration pause(random_.between(Duration(100ms).count(), Duration(9s).count()));
  context_.world.after(pause, [this, life] {
    if (life == lives_) boot();
  });
}

void GroupMember::schedule_trouble() {
  if (context_.is_over || options_.mean_life == Duration{0}) return;
  uint64_t life = lives_;
  Duration span(random_.between(0, 2 * options_.mean_life.count()));
  context_.world.after(span, [this, life] { meet_trouble(life); });
}

void GroupMember::meet_trouble(uint64_t life) {
  if (life != lives_ || context_.is_over) return;
  switch (random_.below(4)) {
    case 0:
      context_.world.happened("group.member_killed");
      end_life();
      return;
    case 1:
      context_.world.happened("group.member_leaves");
      program_->is_leaving = true;
      return;
    case 2:
      context_.world.happened("group.member_paused");
      return pause(life);
    default:
      context_.world.happened("group.member_oversleeps");
      program_->oversleeps = true;
      schedule_trouble();
  }
}

// Mostly for longer than its session, which it learns when it goes on with what it was about to do.
void GroupMember::pause(uint64_t life) {
  node_.pause();
  Duration span(random_.between(0, 2 * options_.session_timeout.count()));
  context_.world.after(span, [this, life] {
    if (life != lives_) return;
    node_.resume();
    schedule_trouble();
  });
}

const client::GroupConsumer* GroupMember::consumer() const {
  return program_ == nullptr ? nullptr : &program_->consumer;
}

bool GroupMember::is_in_group() const {
  return program_ != nullptr && !program_->is_leaving && !program_->consumer.needs_join();
}

std::string GroupMember::describe() const {
  if (program_ == nullptr) return host() + " is down";
  const GroupIdentity& who = program_->consumer.identity();
  return fmt::format("{} is {} in generation {} of {}{}, with {} partitions", host(), who.member_id,
                     who.generation, options_.name, program_->consumer.needs_join() ? " (joining)" : "",
                     program_->consumer.assignment().size());
}

Task<> GroupMember::run(Program* program) {
  while (!program->is_leaving && co_await read_and_commit(program)) {
  }
  co_await program->consumer.close();
  co_await program->cluster.close();
  uint64_t life = program->life;
  // Not from inside of what it destroys.
  context_.world.after(0ms, [this, life] {
    if (life == lives_) end_life();
  });
}

Task<bool> GroupMember::read_and_commit(Program* program) {
  auto records = co_await program->consumer.poll(kPollTime);
  if (!records) {
    context_.world.trace("{} ends: {}", host(), records.error().message);
    context_.world.happened(fmt::format("group.error_{}", static_cast<int16_t>(records.error().kafka)));
    context_.findings.require(is_expected(records.error()), "{} of group {} gets {}", host(), options_.name,
                              records.error().message);
    co_return false;
  }
  check_order(*program, *records);
  if (std::exchange(program->oversleeps, false) && !context_.is_over) {
    // Longer than the group waits for it, or not.
    Duration span(program->random.between(0, 2 * options_.rebalance_timeout.count()));
    co_await runtime::sleep_for(span);
  }
  bool is_chosen = !records->empty() && program->random.chance(options_.commit_per_mille, 1000);
  if (is_chosen || program->cluster.now() >= program->next_commit) co_await commit(program);
  co_return true;
}

// Nobody skips a record that nobody wanted deleted, and nobody reads one twice in one assignment.
void GroupMember::check_order(Program& program, const std::vector<client::ConsumedRecord>& records) {
  for (const client::ConsumedRecord& record : records) {
    if (!history_.is_certain(record.at.topic)) continue;
    std::optional<Offset>& next = program.scribe.next(record.at);
    PartitionKey key{context_.topics.find_certain(record.at.topic)->id, record.at.partition};
    bool is_next = next == record.offset ||
                   (next < record.offset && record.offset <= context_.history.deleted_records(key).asked);
    context_.findings.require(is_next, "{} of group {} reads {} of {}, and should go on at {}", host(),
                              options_.name, record.offset, record.at.to_string(), next.value_or(Offset(-1)));
    next = record.offset.plus(1);
  }
}

Task<> GroupMember::commit(Program* program) {
  program->next_commit = program->cluster.now() + kIdleCommitInterval;
  client::Commits commits = program->consumer.positions();
  GroupIdentity who = program->consumer.identity();
  if (commits.empty() || who.generation < 0) co_return;
  uint64_t number = history_.committing(options_.name, who, commits);
  auto done = co_await program->consumer.commit(std::move(commits));
  CommitAnswer answer = CommitAnswer::kAcked;
  if (!done) answer = says_not_stored(done.error()) ? CommitAnswer::kRefused : CommitAnswer::kUnknown;
  if (!done && done.error().cause == ClientErrc::kRefused) {
    context_.world.happened(fmt::format("group.commit_error_{}", static_cast<int16_t>(done.error().kafka)));
  } else if (!done) {
    context_.world.happened("group.commit_unanswered");
  }
  history_.answered(number, answer);
}

}  // namespace varve::sim
