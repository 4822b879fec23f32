#include "sim/network.h"

#include <gtest/gtest.h>

#include "runtime/task_scope.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using runtime::NetErrc;
using runtime::NetResult;
using runtime::Stream;
using runtime::Task;
using runtime::TaskScope;

constexpr uint16_t kPort = 9092;

// What a server saw and how the last connection ended.
struct Seen {
  std::string bytes;
  int connections = 0;
  int ends = 0;
  int resets = 0;
  MonotonicTime last_at;
};

Task<> serve(runtime::Runtime& runtime, Seen* seen) {
  auto listener = runtime.network().listen(runtime.io(0), {"", kPort});
  EXPECT_TRUE(listener);
  for (;;) {
    auto stream = co_await (*listener)->accept(runtime.io(0));
    if (!stream) co_return;
    ++seen->connections;
    std::vector<uint8_t> bytes(1000);
    for (;;) {
      auto got = co_await (*stream)->read_some(bytes);
      seen->last_at = runtime.now();
      if (got && *got > 0) {
        seen->bytes += as_text(ByteView(bytes).first(*got));
        continue;
      }
      ++(got ? seen->ends : seen->resets);
      break;
    }
  }
}

// Connects and sends "x" every 100 ms; remembers how it ended.
struct Sender {
  std::optional<NetErrc> connect_error;
  std::optional<NetErrc> write_error;
  int sent = 0;
  MonotonicTime ended_at;
};

Task<> send(runtime::Runtime& runtime, std::string host, int count, Sender* sender) {
  auto stream = co_await runtime.network().connect({host, kPort}, runtime.now() + 10s);
  if (!stream) {
    sender->connect_error = stream.error().code;
    sender->ended_at = runtime.now();
    co_return;
  }
  std::vector<ByteView> slices = {as_bytes("x")};
  for (; sender->sent < count; ++sender->sent) {
    auto written = co_await (*stream)->write(slices);
    if (!written) {
      sender->write_error = written.error().code;
      break;
    }
    co_await runtime::sleep_for(100ms);
  }
  sender->ended_at = runtime.now();
}

class SimNetworkTest : public testing::Test {
 protected:
  void SetUp() override { start_server(); }
  // Frames go before the nodes they ran on.
  void TearDown() override {
    clients_.reset();
    server_.reset();
  }
  void start_server() {
    server_ = std::make_unique<TaskScope>();
    server_->spawn(b_.process().io(0), "server", serve(b_.process(), &seen_));
  }
  void start_sender(int count) {
    clients_->spawn(a_.process().io(0), "sender", send(a_.process(), "b", count, &sender_));
  }
  void crash_server(CrashKind kind) {
    b_.crash(kind);
    server_.reset();
  }

  World world_{{.seed = 11}};
  SimNetwork network_{world_};
  Node a_{world_, {.host = "a"}, &network_};
  Node b_{world_, {.host = "b"}, &network_};
  Seen seen_;
  Sender sender_;
  std::unique_ptr<TaskScope> server_;
  std::unique_ptr<TaskScope> clients_ = std::make_unique<TaskScope>();
};

TEST_F(SimNetworkTest, CarriesBytesBetweenNodes) {
  start_sender(10);
  world_.run_for(5s);
  EXPECT_EQ(seen_.bytes, "xxxxxxxxxx");
  EXPECT_EQ(seen_.ends, 1);
  EXPECT_FALSE(sender_.connect_error || sender_.write_error);
}

TEST_F(SimNetworkTest, AShortPartitionDelaysAndLosesNothing) {
  start_sender(20);
  world_.run_for(500ms);
  network_.set_partitioned("a", "b", true);
  world_.run_for(10s);
  EXPECT_LT(seen_.bytes.size(), 20u);
  network_.set_partitioned("a", "b", false);
  world_.run_for(1s);
  EXPECT_EQ(seen_.bytes.size(), 20u);
  EXPECT_EQ(seen_.ends, 1);
  EXPECT_EQ(seen_.resets, 0);
}

TEST_F(SimNetworkTest, AcrossALongPartitionTheSenderGivesUp) {
  start_sender(10'000);
  world_.run_for(500ms);
  network_.set_isolated("b", true);
  world_.run_for(2min);
  EXPECT_EQ(sender_.write_error, NetErrc::kReset);
  EXPECT_GE(sender_.ended_at.since_zero(), 15s);
  network_.heal();
  world_.run_for(1min);
  EXPECT_LE(seen_.bytes.size(), static_cast<size_t>(sender_.sent) + 1);
}

TEST_F(SimNetworkTest, ConnectingIntoAPartitionEndsAtTheDeadline) {
  network_.set_partitioned("b", "a", true);
  start_sender(1);
  world_.run_for(20s);
  EXPECT_EQ(sender_.connect_error, NetErrc::kTimeout);
  EXPECT_GE(sender_.ended_at.since_zero(), 10s);
}

TEST_F(SimNetworkTest, AKilledPeerResetsSoon) {
  start_sender(10'000);
  world_.run_for(500ms);
  MonotonicTime killed_at = world_.now();
  crash_server(CrashKind::kKilled);
  world_.run_for(5s);
  EXPECT_EQ(sender_.write_error, NetErrc::kReset);
  EXPECT_LT(sender_.ended_at - killed_at, 2s);
  Sender late;
  clients_->spawn(a_.process().io(0), "late", send(a_.process(), "b", 1, &late));
  world_.run_for(5s);
  EXPECT_EQ(late.connect_error, NetErrc::kRefused);
}

TEST_F(SimNetworkTest, APeerWithoutPowerIsSilentUntilItIsUpAgain) {
  start_sender(10'000);
  world_.run_for(500ms);
  MonotonicTime cut_at = world_.now();
  crash_server(CrashKind::kPowerCut);
  Sender late;
  clients_->spawn(a_.process().io(0), "late", send(a_.process(), "b", 1, &late));
  world_.run_for(11s);
  EXPECT_EQ(late.connect_error, NetErrc::kTimeout);
  EXPECT_FALSE(sender_.write_error);
  b_.boot();
  start_server();
  world_.run_for(5s);
  EXPECT_EQ(sender_.write_error, NetErrc::kReset) << "the new process does not know the connection";
  EXPECT_LT(sender_.ended_at - cut_at, 15s);
}

TEST_F(SimNetworkTest, ACutIsAResetAtBothEnds) {
  start_sender(10'000);
  world_.run_for(500ms);
  EXPECT_TRUE(network_.cut_one());
  world_.run_for(5s);
  EXPECT_EQ(sender_.write_error, NetErrc::kReset);
  EXPECT_EQ(seen_.resets, 1);
}

TEST_F(SimNetworkTest, APausedPeerStillTakesBytes) {
  world_.run_for(10ms);
  b_.pause();
  start_sender(10);
  world_.run_for(5s);
  EXPECT_EQ(sender_.sent, 10);
  EXPECT_EQ(seen_.bytes, "");
  b_.resume();
  world_.run_for(1s);
  EXPECT_EQ(seen_.bytes.size(), 10u);
}

TEST_F(SimNetworkTest, UnknownHostsAndForeignAddressesAreBad) {
  clients_->spawn(a_.process().io(0), "sender", send(a_.process(), "nowhere", 1, &sender_));
  world_.run_for(1s);
  EXPECT_EQ(sender_.connect_error, NetErrc::kBadAddress);
  auto listener = a_.process().network().listen(a_.process().io(0), {"b", 1});
  EXPECT_EQ(listener.error().code, NetErrc::kBadAddress);
}

Task<> keep_sending(runtime::Runtime& runtime, std::map<NetErrc, int>* errors, uint64_t* acknowledged) {
  for (;;) {
    Sender sender;
    co_await send(runtime, "b", 20, &sender);
    if (sender.connect_error) ++(*errors)[*sender.connect_error];
    if (sender.write_error) ++(*errors)[*sender.write_error];
    *acknowledged += static_cast<uint64_t>(sender.sent);
    if (co_await runtime::sleep_for(10ms) == runtime::Wake::kStopped) co_return;
  }
}

TEST_F(SimNetworkTest, EveryFaultOfThePlanHappensAndNoByteIsMadeUp) {
  network_.set_faults(NetworkFaults::all(20));
  std::map<NetErrc, int> errors;
  uint64_t sent = 0;
  clients_->spawn(a_.process().io(0), "sender", keep_sending(a_.process(), &errors, &sent));
  world_.run_for(30min);
  for (std::string fault :
       {"network.cut", "network.clog", "network.connect_refused", "network.connect_silent"}) {
    EXPECT_TRUE(world_.happenings().contains(fault)) << fault;
  }
  EXPECT_GT(errors[NetErrc::kRefused], 0);
  EXPECT_GT(errors[NetErrc::kTimeout], 0);
  EXPECT_GT(errors[NetErrc::kReset], 0);
  EXPECT_GT(seen_.bytes.size(), sent / 2);
  EXPECT_LE(seen_.bytes.size(), sent + 20);
  EXPECT_GT(seen_.resets, 0);
}

}  // namespace
}  // namespace varve::sim
