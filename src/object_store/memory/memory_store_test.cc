#include "object_store/memory/memory_store.h"

#include "object_store/store_conformance.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::object_store {
namespace {

class MemoryUnderTest final : public StoreUnderTest {
 public:
  ObjectStore& store() override { return store_; }
  void run(runtime::Task<> task) override { sim::run_task(world_, node_.process().io(0), std::move(task)); }

 private:
  sim::World world_{{.seed = 1}};
  sim::Node node_{world_, {.host = "a"}};
  MemoryStore store_;
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         testing::Values(StoreCase{"memory",
                                                   [] { return std::make_unique<MemoryUnderTest>(); }}),
                         store_case_name);

runtime::Task<> fill(MemoryStore* store) {
  EXPECT_TRUE(co_await store->put("a", conformance::body_of("12345678")));
  EXPECT_EQ(conformance::code_of(co_await store->put("b", conformance::body_of("123"))), StoreErrc::kNoSpace);
  EXPECT_TRUE(co_await store->put("a", conformance::body_of("1234567890"))) << "the old bytes go first";
  EXPECT_TRUE(co_await store->delete_many({"a"}));
  EXPECT_TRUE(co_await store->put("b", conformance::body_of("123")));
  EXPECT_EQ(store->object_count(), 1u);
}

TEST(MemoryStore, RefusesWhatIsBeyondItsCapacity) {
  sim::World world({.seed = 1});
  sim::Node node(world, {.host = "a"});
  MemoryStore store(10);
  sim::run_task(world, node.process().io(0), fill(&store));
}

}  // namespace
}  // namespace varve::object_store
