#include "object_store/metered_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/node.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::object_store {
namespace {

using ::testing::HasSubstr;

class MeteredStoreTest : public ::testing::Test {
 protected:
  MeteredStoreTest()
      : world_({.seed = 3}),
        shared_(world_),
        node_(world_, {.host = "a"}),
        client_(shared_.client("a")),
        store_(*client_, node_.process(), metrics_) {}

  // `count` puts of 100 bytes under new keys.
  void put(int count) {
    auto all = [&]() -> runtime::Task<> {
      for (int i = 0; i < count; ++i) {
        std::string key = "k" + std::to_string(next_++);
        co_await store_.put_if_absent(key, {Slice::take(std::vector<uint8_t>(100))});
      }
    };
    sim::run_task(world_, node_.process().io(0), all());
  }
  static sim::StoreFaults failing() {
    sim::StoreFaults faults;
    faults.put.throttled = 1000;
    return faults;
  }

  sim::World world_;
  sim::SimObjectStore shared_;
  sim::Node node_;
  std::unique_ptr<ObjectStore> client_;
  MetricRegistry metrics_;
  MeteredStore store_;
  int next_ = 0;
};

TEST_F(MeteredStoreTest, CallsBytesAndTimesAreCountedByOperation) {
  put(3);
  std::string text = metrics_.to_prometheus_text();
  EXPECT_THAT(text, HasSubstr("varve_store_seconds_count{operation=\"put\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("varve_store_put_bytes_total 300\n"));
  EXPECT_THAT(text, HasSubstr("kafscale_s3_health_state{state=\"healthy\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("kafscale_s3_health_state{state=\"Unavailable\"} 0\n"));
}

TEST_F(MeteredStoreTest, AnswersThatAreNoSuccessAreNoFailures) {
  auto ask = [&]() -> runtime::Task<> {
    for (int i = 0; i < 10; ++i) {
      auto got = co_await store_.get("nothing", std::nullopt);
      EXPECT_EQ(got.error().code, StoreErrc::kNotFound);
    }
  };
  sim::run_task(world_, node_.process().io(0), ask());
  EXPECT_THAT(metrics_.to_prometheus_text(), HasSubstr("varve_store_failures_total{operation=\"get\"} 0\n"));
  EXPECT_EQ(store_.health(), StoreHealth::kHealthy);
}

TEST_F(MeteredStoreTest, HealthFollowsTheWindowAndHealsByItself) {
  shared_.set_faults(failing());
  put(2);
  EXPECT_EQ(store_.health(), StoreHealth::kHealthy) << "too few to say";
  put(8);
  EXPECT_EQ(store_.health(), StoreHealth::kUnavailable);
  shared_.set_faults({});
  put(240);  // one call in 25 failed
  EXPECT_EQ(store_.health(), StoreHealth::kDegraded);
  world_.run_for(61s);
  EXPECT_EQ(store_.health(), StoreHealth::kHealthy);
}

}  // namespace
}  // namespace varve::object_store
