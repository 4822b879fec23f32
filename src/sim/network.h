// SimNetwork: the machines' network in a simulated world.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "runtime/network.h"
#include "sim/connection.h"
#include "sim/delay.h"
#include "sim/node.h"

namespace varve::sim {

// Per mille of the calls that meet it. All zero: a network that only takes time and splits reads.
struct NetworkFaults {
  uint32_t connect_refused = 0;
  uint32_t connect_silent = 0;  // no answer until the deadline
  uint32_t cut = 0;             // of the writes: both ends get kReset, at their own times
  uint32_t clog = 0;            // of the writes: the way between the two hosts is blocked for a while
  Duration clog_max = 20s;

  static NetworkFaults all(uint32_t per_mille);
};

struct NetworkTimes {
  Delay one_way{.low = 50us, .high = 2ms, .slow_per_mille = 5, .slow_high = 200ms};
  // Until a sender whose bytes are not acknowledged gives up.
  Duration give_up_min = 15s;
  Duration give_up_max = 60s;
};

// Hosts are named as the nodes; "127.0.0.1" and "localhost" mean the caller's own.
// Life: made after the world and before the nodes, destroyed after them.
class SimNetwork {
 public:
  explicit SimNetwork(World& world, NetworkTimes times = {});
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  void set_faults(const NetworkFaults& faults) { faults_ = faults; }
  // Blocks or opens the way between two hosts, both directions; what is on its way waits.
  void set_partitioned(const std::string& a, const std::string& b, bool is_partitioned);
  // The same between `host` and everybody else.
  void set_isolated(const std::string& host, bool is_isolated);
  // Opens every way again.
  void heal();
  bool can_pass(const std::string& from, const std::string& to) const;
  // Cuts a connection chosen at random. False if there is none.
  bool cut_one();

 private:
  friend class Node;
  friend class Process;
  friend class SimConnection;
  class ProcessNetwork;
  class SimListener;
  class SimStream;
  struct Listening;

  // For nodes: the view of one process, and its end.
  std::unique_ptr<runtime::Network> join(Process& process);
  void process_ended(Process& process, CrashKind kind);

  using PlaceKey = std::pair<std::string, uint16_t>;
  using Connected = runtime::NetResult<std::shared_ptr<SimConnection>>;

  runtime::NetResult<std::shared_ptr<Listening>> listen(Process& process, const runtime::Address& address);
  void connect(Process& process, PlaceKey place, runtime::Completion<Connected> reply);
  void arrive_at(Process& process, const PlaceKey& place, runtime::Completion<Connected> reply);
  // Nobody answers: the caller's kernel gives up in the end.
  void say_nothing(const runtime::Completion<Connected>& reply);
  void block_for(const std::string& from, const std::string& to, Duration span);
  void release_all();
  bool draw(uint32_t per_mille, std::string_view fault);
  Duration draw_one_way() { return times_.one_way.draw(world_.random()); }
  Duration draw_give_up();

  World& world_;
  NetworkTimes times_;
  NetworkFaults faults_;
  std::set<std::string> hosts_;
  std::set<std::string> without_power_;
  std::map<PlaceKey, std::shared_ptr<Listening>> listening_;
  std::map<uint64_t, std::weak_ptr<SimConnection>> connections_;
  std::map<std::pair<std::string, std::string>, int> blocked_;  // from, to: by how many reasons
  std::set<std::pair<std::string, std::string>> partitions_;
  std::set<std::string> isolated_;
  uint64_t next_connection_ = 1;
  uint16_t next_port_ = 20'000;
};

}  // namespace varve::sim
