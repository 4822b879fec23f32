#include "sim/network.h"

#include <vector>

#include "runtime/runtime.h"

namespace varve::sim {

using runtime::Address;
using runtime::Completion;
using runtime::Done;
using runtime::Executor;
using runtime::Listener;
using runtime::NetErrc;
using runtime::NetResult;
using runtime::Stream;
using runtime::Task;

namespace {

constexpr size_t kBacklogMax = 128;
constexpr Duration kConnectGiveUp = 130s;

bool is_own(const std::string& host) { return host == "127.0.0.1" || host == "localhost" || host == "::1"; }

}  // namespace

NetworkFaults NetworkFaults::all(uint32_t per_mille) {
  return {.connect_refused = per_mille, .connect_silent = per_mille, .cut = per_mille, .clog = per_mille};
}

// A bound port: shared by the listener and the table of the network.
struct SimNetwork::Listening {
  Process* process;
  Address address;
  std::deque<std::shared_ptr<SimConnection>> backlog;
  std::optional<Completion<bool>> waiting;  // accept(); the value is whether the task was asked to stop
  bool is_closed = false;

  void wake() {
    if (waiting) waiting->set(false);
    waiting.reset();
  }
};

class SimNetwork::SimStream final : public Stream {
 public:
  SimStream(std::shared_ptr<SimConnection> connection, SimConnection::Side side, Executor& executor,
            Address peer)
      : connection_(std::move(connection)), side_(side), executor_(executor), peer_(std::move(peer)) {}
  ~SimStream() override { connection_->close(side_); }

  Task<NetResult<size_t>> read_some(MutableByteView into) override {
    CHECK(executor_.is_current(), "a stream of {} used elsewhere", executor_.name());
    return connection_->read_some(side_, into);
  }
  Task<NetResult<void>> write(std::span<const ByteView> slices) override {
    CHECK(executor_.is_current(), "a stream of {} used elsewhere", executor_.name());
    return connection_->write(side_, {slices.begin(), slices.end()});
  }
  void close() override { connection_->close(side_); }
  const Address& peer() const override { return peer_; }

 private:
  std::shared_ptr<SimConnection> connection_;
  SimConnection::Side side_;
  Executor& executor_;
  Address peer_;
};

class SimNetwork::SimListener final : public Listener {
 public:
  SimListener(SimNetwork& network, std::shared_ptr<Listening> listening)
      : network_(network), listening_(std::move(listening)) {}
  ~SimListener() override { close(); }

  Task<NetResult<std::unique_ptr<Stream>>> accept(Executor& executor) override {
    while (listening_->backlog.empty()) {
      if (listening_->is_closed) co_return fail(NetErrc::kClosed, "the listener is closed");
      Completion<bool> woken;
      listening_->waiting = woken;
      bool is_stopped = co_await runtime::wait_until(woken, MonotonicTime::never(), true);
      if (is_stopped) co_return fail(NetErrc::kClosed, "stopped");
    }
    std::shared_ptr<SimConnection> connection = std::move(listening_->backlog.front());
    listening_->backlog.pop_front();
    Address peer{connection->process(0).node().host(),
                 static_cast<uint16_t>(30'000 + connection->number() % 30'000)};
    co_return std::make_unique<SimStream>(std::move(connection), 1, executor, std::move(peer));
  }

  void close() override {
    if (listening_->is_closed) return;
    listening_->is_closed = true;
    listening_->wake();
    for (auto& connection : listening_->backlog) connection->close(1);
    listening_->backlog.clear();
    auto found = network_.listening_.find({listening_->process->node().host(), listening_->address.port});
    if (found != network_.listening_.end() && found->second == listening_) network_.listening_.erase(found);
  }
  const Address& local() const override { return listening_->address; }

 private:
  SimNetwork& network_;
  std::shared_ptr<Listening> listening_;
};

class SimNetwork::ProcessNetwork final : public runtime::Network {
 public:
  ProcessNetwork(SimNetwork& network, Process& process) : network_(network), process_(process) {}

  NetResult<std::unique_ptr<Listener>> listen(Executor&, const Address& address) override {
    auto listening = network_.listen(process_, address);
    if (!listening) return pass_error(listening);
    return std::make_unique<SimListener>(network_, *listening);
  }

  Task<NetResult<std::unique_ptr<Stream>>> connect(Address address, MonotonicTime deadline) override {
    Executor& executor = *(co_await runtime::this_context()).executor;
    std::string host = is_own(address.host) ? process_.node().host() : address.host;
    if (!network_.hosts_.contains(host)) co_return fail(NetErrc::kBadAddress, "no host " + host);
    Completion<Connected> reply;
    network_.connect(process_, {host, address.port}, reply);
    Connected nothing = fail(NetErrc::kTimeout, "no answer from " + address.to_string());
    Connected connected = co_await runtime::wait_until(reply, deadline, std::move(nothing));
    if (!connected) {
      bool is_stopped = (co_await runtime::this_context()).stop.stop_requested();
      if (is_stopped) co_return fail(NetErrc::kClosed, "stopped");
      co_return pass_error(connected);
    }
    co_return std::make_unique<SimStream>(std::move(*connected), 0, executor, address);
  }

 private:
  SimNetwork& network_;
  Process& process_;
};

SimNetwork::SimNetwork(World& world, NetworkTimes times) : world_(world), times_(times) {}
SimNetwork::~SimNetwork() = default;

std::unique_ptr<runtime::Network> SimNetwork::join(Process& process) {
  hosts_.insert(process.node().host());
  without_power_.erase(process.node().host());
  return std::make_unique<ProcessNetwork>(*this, process);
}

void SimNetwork::process_ended(Process& process, CrashKind kind) {
  if (kind == CrashKind::kPowerCut) without_power_.insert(process.node().host());
  std::erase_if(listening_, [&](auto& entry) {
    Listening& listening = *entry.second;
    if (listening.process != &process) return false;
    listening.is_closed = true;
    listening.backlog.clear();
    return true;
  });
  std::erase_if(connections_, [](auto& entry) { return entry.second.expired(); });
  for (auto& [number, weak] : connections_) {
    std::shared_ptr<SimConnection> connection = weak.lock();
    for (SimConnection::Side side : {SimConnection::Side{0}, SimConnection::Side{1}}) {
      if (&connection->process(side) == &process) connection->process_ended(side, kind);
    }
  }
}

bool SimNetwork::draw(uint32_t per_mille, std::string_view fault) {
  if (per_mille == 0 || !world_.random().chance(per_mille, 1000)) return false;
  world_.happened(fault);
  return true;
}

Duration SimNetwork::draw_give_up() {
  return Duration(world_.random().between(times_.give_up_min.count(), times_.give_up_max.count()));
}

NetResult<std::shared_ptr<SimNetwork::Listening>> SimNetwork::listen(Process& process,
                                                                     const Address& address) {
  const std::string& own = process.node().host();
  if (!address.host.empty() && !is_own(address.host) && address.host != own) {
    return fail(NetErrc::kBadAddress, address.host + " is not an address of " + own);
  }
  uint16_t port = address.port;
  while (port == 0 || (address.port == 0 && listening_.contains({own, port}))) port = next_port_++;
  if (listening_.contains({own, port})) return fail(NetErrc::kAddressInUse, address.to_string());
  auto listening = std::make_shared<Listening>();
  listening->process = &process;
  listening->address = {address.host, port};
  listening_.emplace(PlaceKey{own, port}, listening);
  return listening;
}

void SimNetwork::connect(Process& process, PlaceKey place, Completion<Connected> reply) {
  if (draw(faults_.connect_silent, "network.connect_silent")) return say_nothing(reply);
  if (draw(faults_.connect_refused, "network.connect_refused")) {
    world_.after(draw_one_way() * 2, [reply] { reply.set(fail(NetErrc::kRefused, "refused")); });
    return;
  }
  world_.after(draw_one_way(),
               [this, &process, place = std::move(place), reply] { arrive_at(process, place, reply); });
}

void SimNetwork::arrive_at(Process& process, const PlaceKey& place, Completion<Connected> reply) {
  const std::string& from = process.node().host();
  if (!process.is_alive()) return;
  bool is_blocked = !can_pass(from, place.first) || !can_pass(place.first, from);
  // A killed process leaves a kernel that refuses; a machine without power says nothing.
  if (is_blocked || without_power_.contains(place.first)) return say_nothing(reply);
  auto found = listening_.find(place);
  Duration back = draw_one_way();
  if (found == listening_.end() || found->second->backlog.size() >= kBacklogMax) {
    world_.after(back, [reply] { reply.set(fail(NetErrc::kRefused, "nobody listens there")); });
    return;
  }
  Listening& listening = *found->second;
  auto connection = std::make_shared<SimConnection>(*this, next_connection_++, process, *listening.process);
  connections_.emplace(connection->number(), connection);
  listening.backlog.push_back(connection);
  listening.wake();
  world_.after(back, [reply, connection] {
    // The caller may have given up, or be gone: then nobody has this end.
    if (!reply.set(connection)) connection->close(0);
  });
}

void SimNetwork::say_nothing(const Completion<Connected>& reply) {
  world_.after(kConnectGiveUp, [reply] { reply.set(fail(NetErrc::kTimeout, "no answer")); });
}

bool SimNetwork::can_pass(const std::string& from, const std::string& to) const {
  if (from == to) return true;
  if (isolated_.contains(from) || isolated_.contains(to)) return false;
  if (partitions_.contains(std::minmax(from, to))) return false;
  return !blocked_.contains({from, to});
}

void SimNetwork::block_for(const std::string& from, const std::string& to, Duration span) {
  if (from == to) return;
  ++blocked_[{from, to}];
  world_.after(span, [this, way = std::pair(from, to)] {
    auto found = blocked_.find(way);
    if (found == blocked_.end()) return;  // healed meanwhile
    if (--found->second == 0) blocked_.erase(found);
    release_all();
  });
}

void SimNetwork::release_all() {
  std::erase_if(connections_, [](auto& entry) { return entry.second.expired(); });
  for (auto& [number, weak] : connections_) {
    std::shared_ptr<SimConnection> connection = weak.lock();
    const std::string& host0 = connection->process(0).node().host();
    const std::string& host1 = connection->process(1).node().host();
    if (can_pass(host0, host1)) connection->pump(0);
    if (can_pass(host1, host0)) connection->pump(1);
  }
}

void SimNetwork::set_partitioned(const std::string& a, const std::string& b, bool is_partitioned) {
  std::pair<std::string, std::string> pair = std::minmax(a, b);
  if (is_partitioned) {
    partitions_.insert(std::move(pair));
    world_.happened("network.partition");
  } else {
    partitions_.erase(pair);
    release_all();
  }
}

void SimNetwork::set_isolated(const std::string& host, bool is_isolated) {
  if (is_isolated) {
    isolated_.insert(host);
    world_.happened("network.isolated");
  } else {
    isolated_.erase(host);
    release_all();
  }
}

void SimNetwork::heal() {
  partitions_.clear();
  isolated_.clear();
  blocked_.clear();
  release_all();
}

bool SimNetwork::cut_one() {
  std::erase_if(connections_, [](auto& entry) { return entry.second.expired(); });
  if (connections_.empty()) return false;
  auto chosen = connections_.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(world_.random().below(connections_.size())));
  world_.happened("network.cut");
  chosen->second.lock()->cut();
  return true;
}

}  // namespace varve::sim
