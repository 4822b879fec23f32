// Workload: the clients of one run on their machines, what they were promised, and what is checked of it in the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/network.h"
#include "sim/workload/full_reader.h"
#include "sim/workload/groups.h"
#include "sim/workload/topic_tender.h"
#include "sim/workload/witness.h"
#include "sim/workload/workload_plan.h"

namespace varve::sim {

// Life: made after world and network, destroyed before them; its machines do not crash until stop(). start(), later
// end(); once is_finished() and nothing is under way any more, read_all(), and once has_read_all() check().
class Workload {
 public:
  // tail: the state at the log's tail, now; only groups need it.
  Workload(World& world, SimNetwork& network, Findings& findings, std::vector<std::string> broker_hosts,
           const WorkloadPlan& plan, std::function<const metadata::State&()> tail = {});
  ~Workload();

  void start();
  // Nothing new is begun; what is begun is finished.
  void end() { context_.is_over = true; }
  bool is_over() const { return context_.is_over; }
  bool is_finished() const;

  Groups& groups() { return *groups_; }

  // Reads everything from every broker; the consumers have to come to its end too.
  void read_all();
  bool has_read_all() const;
  // Nothing acknowledged is lost, nothing comes twice, all brokers say the same.
  void check();
  // The order of what was read, whatever the run came to.
  void check_order();

  // Who is not finished: a line each.
  std::string describe() const;
  void stop();

 private:
  Process& next_node() { return nodes_[next_node_++ % nodes_.size()]->process(); }
  bool has_read_all(const Consumer& consumer) const;
  Groups::Ends ends() const;
  // The first partition that it has not read to the end; "" if there is none.
  std::string behind(const Consumer& consumer) const;

  Findings& findings_;
  TopicBook topics_;
  History history_;
  WorkloadContext context_;
  std::vector<std::unique_ptr<Node>> nodes_;
  size_t next_node_ = 0;
  std::unique_ptr<Admin> admin_;
  std::unique_ptr<Witness> witness_;
  std::unique_ptr<TopicTender> tender_;  // nullptr: topics stay as they are made
  std::vector<std::unique_ptr<Producer>> producers_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::unique_ptr<Groups> groups_;
  std::unique_ptr<SimpleGroup> simple_group_;  // nullptr: everybody is a member
  std::vector<std::unique_ptr<FullReader>> readers_;
};

}  // namespace varve::sim
