#include "apps/store_proxy/disturbance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace varve::apps {
namespace {

TEST(Latency, HasTheMedianAndTheTailThatWereAskedFor) {
  Random random(1);
  Latency latency{.p50 = 50ms, .p99 = 150ms};
  std::vector<Duration> drawn;
  for (int i = 0; i < 100'000; ++i) drawn.push_back(latency.draw(random));
  std::ranges::sort(drawn);
  EXPECT_NEAR(static_cast<double>(drawn[50'000] / 1us), 50'000, 500);
  EXPECT_NEAR(static_cast<double>(drawn[99'000] / 1us), 150'000, 5'000);
  EXPECT_GT(drawn.front(), Duration(0));
  EXPECT_EQ(Latency().draw(random), Duration(0));
}

TEST(Disturbance, DrawsEachFateAsOftenAsItWasTold) {
  Random random(1);
  Disturbance disturbance;
  for (const char* fate :
       {"throttled", "failed", "skewed", "reply-lost", "error-after", "stalled", "cut", "corrupted"}) {
    EXPECT_EQ(disturbance.set(fate, "100"), std::nullopt);
  }
  std::map<Fate, int> drawn;
  for (int i = 0; i < 100'000; ++i) ++drawn[disturbance.draw_fate(random)];
  for (auto [fate, times] : drawn) EXPECT_NEAR(times, fate == Fate::kServed ? 20'000 : 10'000, 800);
  EXPECT_EQ(drawn.size(), 9u);
}

TEST(Disturbance, SaysWhatCannotBeSet) {
  Disturbance disturbance;
  EXPECT_EQ(disturbance.set("put-p50-ms", "50"), std::nullopt);
  EXPECT_EQ(disturbance.put.p50, 50ms);
  EXPECT_EQ(disturbance.problem(), "a p99 lies below its p50");
  EXPECT_EQ(disturbance.set("put-p99-ms", "150"), std::nullopt);
  EXPECT_EQ(disturbance.problem(), std::nullopt);
  EXPECT_EQ(disturbance.set("put-p50-ms", "-1"), "put-p50-ms=-1: not a whole number");
  EXPECT_EQ(disturbance.set("putt", "1"), "putt: no such value");
  EXPECT_EQ(disturbance.set("cut", "1001"), std::nullopt);
  EXPECT_EQ(disturbance.problem(), "more than 1,000 per mille of the requests go wrong");
}

TEST(Disturbance, TellsRequestsApart) {
  auto kind = [](std::string method, std::string target) {
    runtime::http::Message request;
    request.method = std::move(method);
    request.target = std::move(target);
    return kind_of(request);
  };
  EXPECT_EQ(kind("PUT", "/b/k"), RequestKind::kPut);
  EXPECT_EQ(kind("GET", "/b/k"), RequestKind::kGet);
  EXPECT_EQ(kind("HEAD", "/b/k"), RequestKind::kHead);
  EXPECT_EQ(kind("GET", "/b/?list-type=2&prefix=a"), RequestKind::kList);
  EXPECT_EQ(kind("POST", "/b/?delete="), RequestKind::kDelete);
  EXPECT_EQ(kind("DELETE", "/b/k"), RequestKind::kDelete);
}

}  // namespace
}  // namespace varve::apps
