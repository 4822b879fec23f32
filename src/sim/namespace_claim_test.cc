// Brokers of one log that claim a namespace at once, and one that comes too late.
#include <gtest/gtest.h>

#include "metadata/client/bucket_identity.h"
#include "sim/disturbed_store_testing.h"
#include "sim/node.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using metadata::LogIdentity;
using metadata::StartErrc;
using Claimed = Result<void, metadata::StartError>;

// A store whose first conditional puts are answered by the test.
class AnsweringStore final : public DisturbedStore {
 public:
  // nullopt: success although nothing was written.
  using Answer = std::optional<object_store::StoreErrc>;

  AnsweringStore(std::unique_ptr<object_store::ObjectStore> store, std::vector<Answer> answers)
      : DisturbedStore(std::move(store)), answers_(std::move(answers)) {}

  size_t left() const { return answers_.size() - given_; }

  runtime::Task<object_store::StoreResult<void>> put_if_absent(std::string key,
                                                               std::vector<Slice> body) override {
    if (left() == 0) co_return co_await DisturbedStore::put_if_absent(std::move(key), std::move(body));
    Answer answer = answers_[given_++];
    if (answer) co_return fail(*answer, "as the test says");
    co_return object_store::StoreResult<void>{};
  }

 private:
  std::vector<Answer> answers_;
  size_t given_ = 0;
};

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

struct ClaimOver {
  // What a claim says whose conditional puts were answered so before the store itself is asked.
  explicit ClaimOver(std::vector<AnsweringStore::Answer> answers) {
    World world({.seed = 1});
    SimObjectStore store(world);
    Node node(world, {.host = "brokers"});
    AnsweringStore answering(store.client("brokers"), std::move(answers));
    run_task(world, node.process().io(0), run(answering));
    unasked = answering.left();
  }
  runtime::Task<> run(AnsweringStore& store) {
    LogIdentity identity;
    identity.id.bytes.fill(1);
    claimed = co_await metadata::claim_namespace(store, "ns", identity, true);
  }

  Claimed claimed = fail(StartErrc::kStopped, "not asked");
  size_t unasked = 0;
};

TEST_F(NamespaceClaim, AStoreThatWritesWhatIsThereIsFoundAndNamed) {
  ClaimOver claim(std::vector<AnsweringStore::Answer>(100));
  ASSERT_FALSE(claim.claimed);
  EXPECT_EQ(claim.claimed.error().code, StartErrc::kStore);
  EXPECT_NE(claim.claimed.error().message.find("ignores conditional puts"), std::string::npos);
  EXPECT_EQ(claim.unasked, 95U);
}

TEST_F(NamespaceClaim, AStoreWhoseAnswersWereLostIsNotAccused) {
  // Refusals that a retry took for its own success; then the store itself, which writes once.
  ClaimOver claim(std::vector<AnsweringStore::Answer>(3));
  EXPECT_TRUE(claim.claimed) << claim.claimed.error().message;
}

TEST_F(NamespaceClaim, RivalsAreNoSignOfAStoreThatIgnoresConditions) {
  ClaimOver some(std::vector<AnsweringStore::Answer>(10, object_store::StoreErrc::kConflict));
  EXPECT_TRUE(some.claimed) << some.claimed.error().message;
  ClaimOver endless(std::vector<AnsweringStore::Answer>(100, object_store::StoreErrc::kConflict));
  ASSERT_FALSE(endless.claimed);
  EXPECT_NE(endless.claimed.error().message.find("others kept writing it"), std::string::npos)
      << endless.claimed.error().message;
}

}  // namespace
}  // namespace varve::sim
