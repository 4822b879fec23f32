#include "sim/workload/workload.h"

#include <algorithm>

#include "sim/checkers/delivery.h"

namespace varve::sim {
namespace {

constexpr size_t kClientNodes = 3;
constexpr Duration kWitnessGap = 200ms;

}  // namespace

Workload::Workload(World& world, SimNetwork& network, Findings& findings,
                   std::vector<std::string> broker_hosts, const WorkloadPlan& plan,
                   std::function<const metadata::State&()> tail)
    : findings_(findings),
      topics_(world, findings),
      history_(world, topics_, findings),
      context_{.world = world,
               .findings = findings,
               .topics = topics_,
               .history = history_,
               .hosts = std::move(broker_hosts),
               .has_early_acks = plan.has_early_acks} {
  for (size_t i = 0; i < kClientNodes; ++i) {
    NodeOptions options{.host = fmt::format("client{}", i), .io_count = 1};
    nodes_.push_back(std::make_unique<Node>(world, std::move(options), &network));
  }
  admin_ = std::make_unique<Admin>(context_, next_node(), plan.topics);
  witness_ = std::make_unique<Witness>(context_, next_node(), kWitnessGap);
  if (plan.tender) tender_ = std::make_unique<TopicTender>(context_, next_node(), *plan.tender);
  for (const ProducerOptions& producer : plan.producers) {
    producers_.push_back(std::make_unique<Producer>(context_, next_node(), producer));
  }
  for (const ConsumerOptions& consumer : plan.consumers) {
    consumers_.push_back(std::make_unique<Consumer>(context_, next_node(), consumer));
  }
  groups_ = std::make_unique<Groups>(context_, next_node(), network, plan.groups, std::move(tail));
  if (plan.simple_group) {
    simple_group_ =
        std::make_unique<SimpleGroup>(context_, next_node(), groups_->history(), *plan.simple_group);
  }
}

Workload::~Workload() { stop(); }

void Workload::start() {
  admin_->start();
  witness_->start();
  if (tender_) tender_->start();
  for (auto& producer : producers_) producer->start();
  for (auto& consumer : consumers_) consumer->start();
  groups_->start();
  if (simple_group_) simple_group_->start();
}

bool Workload::is_finished() const {
  return admin_->is_finished() && (!tender_ || tender_->is_finished()) &&
         (!simple_group_ || simple_group_->is_finished()) &&
         std::ranges::all_of(producers_, [](const auto& producer) { return producer->is_finished(); });
}

void Workload::read_all() {
  for (const std::string& host : context_.hosts) {
    readers_.push_back(std::make_unique<FullReader>(context_, next_node(), host));
    readers_.back()->start();
  }
}

bool Workload::has_read_all() const {
  return std::ranges::all_of(readers_, [](const auto& reader) { return reader->is_finished(); }) &&
         std::ranges::all_of(consumers_, [this](const auto& consumer) { return has_read_all(*consumer); }) &&
         groups_->behind(ends()).empty();
}

// Of the topics that last, by name.
Groups::Ends Workload::ends() const {
  Groups::Ends ends;
  for (const auto& [key, extent] : readers_.front()->extents()) {
    ends[topics_.lives().at(key.topic).name][key.partition] = extent.end;
  }
  return ends;
}

bool Workload::has_read_all(const Consumer& consumer) const { return behind(consumer).empty(); }

std::string Workload::behind(const Consumer& consumer) const {
  const auto& extents = readers_.front()->extents();
  for (const auto& [key, position] : consumer.positions()) {
    auto extent = extents.find(key);
    if (extent == extents.end() || position >= extent->second.end) continue;
    return fmt::format("{} stays at {} of {}, whose end is {}", consumer.name(), position, key.to_string(),
                       extent->second.end);
  }
  return "";
}

void Workload::check() {
  BrokerExtents extents;
  for (const auto& reader : readers_) {
    for (const auto& [key, extent] : reader->extents()) {
      extents[reader->host()][key] = {extent.log_start, extent.end};
    }
  }
  check_delivery(history_, topics_, extents, findings_);
}

void Workload::check_order() { sim::check_order(history_, findings_); }

std::string Workload::describe() const {
  std::string text;
  for (const auto& producer : producers_) {
    if (!producer->is_finished()) text += "\n  " + producer->describe();
  }
  if (!admin_->is_finished()) text += "\n  a topic is half made or half deleted";
  if (tender_ && !tender_->is_finished()) text += "\n  a topic is half changed";
  if (simple_group_ && !simple_group_->is_finished()) text += "\n  a commit of nobody is under way";
  for (const auto& reader : readers_) {
    if (!reader->is_finished()) text += fmt::format("\n  {} cannot be read", reader->host());
  }
  text += groups_->describe();
  if (readers_.empty() || !readers_.front()->is_finished()) return text;
  for (const auto& consumer : consumers_) {
    std::string problem = behind(*consumer);
    if (!problem.empty()) text += "\n  " + problem;
  }
  return text + groups_->behind(ends());
}

void Workload::stop() {
  groups_->stop();
  for (auto& node : nodes_) {
    if (node->is_up()) node->crash(CrashKind::kKilled);
  }
}

}  // namespace varve::sim
