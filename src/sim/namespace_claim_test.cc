// Brokers of one log that claim a namespace at once, and one that comes too late.
#include <gtest/gtest.h>

#include "metadata/client/bucket_identity.h"
#include "sim/node.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using metadata::LogIdentity;
using metadata::StartErrc;
using Claimed = Result<void, metadata::StartError>;

class NamespaceClaim : public testing::Test {
 protected:
  static runtime::Task<> claim(object_store::ObjectStore* store, LogIdentity identity, Claimed* into) {
    *into = co_await metadata::claim_namespace(*store, "ns", identity, true);
  }
  static LogIdentity identity(uint8_t fill) {
    LogIdentity made;
    made.id.bytes.fill(fill);
    return made;
  }
};

TEST_F(NamespaceClaim, BrokersOfOneNewLogThatStartTogetherAllGetIt) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    World world({.seed = seed});
    SimObjectStore store(world);
    Node node(world, {.host = "brokers"});
    auto client = store.client("brokers");
    std::vector<Claimed> claims(3, fail(StartErrc::kStopped, "not asked"));
    runtime::TaskScope scope;
    for (Claimed& claimed : claims) {
      scope.spawn(node.process().io(0), "claim", claim(client.get(), identity(1), &claimed));
    }
    ASSERT_EQ(world.run_until([&scope] { return scope.size() == 0; }), RunEnd::kDone);
    for (const Claimed& claimed : claims) {
      EXPECT_TRUE(claimed) << "seed " << seed << ": " << claimed.error().message;
    }
  }
}

TEST_F(NamespaceClaim, AnotherLogIsRefused) {
  World world({.seed = 1});
  SimObjectStore store(world);
  Node node(world, {.host = "brokers"});
  auto client = store.client("brokers");
  Claimed first = fail(StartErrc::kStopped, "not asked");
  Claimed second = first;
  run_task(world, node.process().io(0), claim(client.get(), identity(1), &first));
  EXPECT_TRUE(first);
  run_task(world, node.process().io(0), claim(client.get(), identity(2), &second));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, StartErrc::kForeignBucket);
}

TEST_F(NamespaceClaim, ANewLogBesideForeignObjectsIsRefused) {
  World world({.seed = 1});
  SimObjectStore store(world);
  Node node(world, {.host = "brokers"});
  auto client = store.client("brokers");
  store.foreign_put("ns/orders/0/segment-0.kfs", Slice::copy_of(as_bytes("x")));
  Claimed claimed = Claimed();
  run_task(world, node.process().io(0), claim(client.get(), identity(1), &claimed));
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, StartErrc::kForeignBucket);
}

TEST_F(NamespaceClaim, AReadThatWasSpoiltAccusesNobody) {
  World world({.seed = 1});
  SimObjectStore store(world);
  Node node(world, {.host = "brokers"});
  auto client = store.client("brokers");
  Claimed claimed = Claimed();
  run_task(world, node.process().io(0), claim(client.get(), identity(1), &claimed));
  ASSERT_TRUE(claimed);
  store.set_faults({.get_corrupt = 500});
  for (int i = 0; i < 50; ++i) {
    run_task(world, node.process().io(0), claim(client.get(), identity(1), &claimed));
    EXPECT_TRUE(claimed || claimed.error().code == StartErrc::kStore) << claimed.error().message;
  }
}

}  // namespace
}  // namespace varve::sim
