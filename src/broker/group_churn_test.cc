// Owners of groups come and go, at random and in the middle of a commit: what was committed stays.
#include "base/random.h"
#include "broker/groups_testing.h"

namespace varve::broker {
namespace {

class GroupChurnTest : public GroupsTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  static constexpr size_t kBrokers = 3;

  Duration draw(int64_t low_ms, int64_t high_ms) {
    return std::chrono::milliseconds(random_.between(low_ms, high_ms));
  }
  // What the broker says is committed; nullopt: it cannot tell.
  Task<std::optional<int64_t>> look(sim::RawClient& client, std::string group) {
    protocol::OffsetFetchRequest request;
    auto& asked = request.groups.emplace_back();
    asked.group_id = std::move(group);
    asked.topics.emplace().emplace_back().name = "t";
    asked.topics->front().partition_indexes = {PartitionIndex(0)};
    auto reply = co_await client.ask(request, 9);
    const auto& row = reply.groups.at(0);
    if (row.error_code != ErrorCode::kNone || row.topics.empty()) co_return std::nullopt;
    co_return row.topics.at(0).partitions.at(0).committed_offset.value();
  }
  // One client that commits ever more, wherever it is let, and gives up what it gets no good answer to.
  Task<> commit_ever_more(std::string group) {
    int64_t next = 0;
    int64_t acknowledged = -1;
    while (true) {
      sim::RawClient client = co_await connect(random_.below(kBrokers));
      for (ErrorCode code = ErrorCode::kNone; code == ErrorCode::kNone;) {
        code = co_await commit(client, {.group = group, .offset = next});
        if (code == ErrorCode::kNone) {
          acknowledged = next;
          ++commits_;
        }
        ++next;
        std::optional<int64_t> committed = co_await look(client, group);
        if (committed) EXPECT_GE(*committed, acknowledged) << group;
        if (is_over_ && committed) co_return;
        co_await runtime::sleep_for(draw(0, 300));
      }
    }
  }
  Task<> disturb() {
    for (int i = 0; i < 60; ++i) {
      co_await runtime::sleep_for(draw(100, 5'000));
      std::vector<Nonce> sessions = log_.sessions();
      bool ends_session = random_.chance(1, 3) && !sessions.empty();
      if (ends_session) log_.expire_session(sessions[random_.below(sessions.size())]);
      std::string host = brokers_[random_.below(kBrokers)]->node().host();
      log_.set_reachable(host, random_.chance(1, 2));
    }
    for (const auto& broker : brokers_) log_.set_reachable(broker->node().host(), true);
    co_await runtime::sleep_for(30s);
  }

  Random random_{GetParam()};
  size_t commits_ = 0;
  bool is_over_ = false;
};

TEST_P(GroupChurnTest, CommittedOffsetsNeverGoBack) {
  start_brokers(kBrokers);
  run([&]() -> Task<> {
    sim::RawClient admin = co_await connect();
    co_await create(admin, "t");
    runtime::TaskScope clients;
    for (const char* group : {"a", "b", "c", "d"}) {
      clients.spawn(client_node_.process().io(0), "commit", commit_ever_more(group));
    }
    co_await disturb();
    is_over_ = true;
    while (clients.size() > 0) co_await runtime::sleep_for(1s);
    co_await clients.close();
  });
  EXPECT_GT(commits_, 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GroupChurnTest, ::testing::Range<uint64_t>(1, 21));

// A commit whose client has gone is judged anew when a broker has come meanwhile: not behind one that came later.
class OvertakenCommitTest : public GroupsTest {
 protected:
  // The log hears nothing of the commit before its client has gone, and another broker has come.
  Task<> commit_and_go(GroupMember& member, std::string group, int64_t offset) {
    sim::LogFaults deaf;
    deaf.append.request_lost = 1000;
    log_.set_faults(deaf);
    co_await post_commit(member, {.group = group, .offset = offset});
    // While something waits behind the commit, the broker does not see the connection's end.
    co_await member.client.post(heartbeat_request(member, group), 4);
    co_await runtime::sleep_for(20ms);
    member.client = co_await connect(0);
    log_.set_faults({});
    brokers_[2]->crash();
    brokers_[2]->boot();
    co_await runtime::sleep_for(1500ms);
  }
};

TEST_F(OvertakenCommitTest, DoesNotTakeBackWhatWasAcknowledgedMeanwhile) {
  start_brokers(3);
  int acknowledged = 0;
  run([&]() -> Task<> {
    std::string group = group_of(0);
    GroupMember member = co_await connect_member(0);
    co_await create(member.client, "t");
    co_await stabilize({&member}, group);
    for (int64_t offset = 10; offset < 130; offset += 10) {
      co_await commit_and_go(member, group, offset);
      ErrorCode code = co_await commit_as(member, {.group = group, .offset = offset + 1});
      co_await runtime::sleep_for(8s);
      if (code != ErrorCode::kNone) continue;
      ++acknowledged;
      EXPECT_EQ((co_await committed(member.client, group)).at("t:0"), offset + 1);
    }
  });
  EXPECT_GT(acknowledged, 5);
}

}  // namespace
}  // namespace varve::broker
