#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace varve {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, PrintTheExpositionFormatInOrder) {
  MetricRegistry registry;
  registry.gauge("varve_b", "A gauge.").set(-2.5);
  registry.counter("varve_a_total", "A counter\nof two lines.", {{"topic", "x"}, {"status", "ok"}}).add(3);
  registry.counter("varve_a_total", "", {{"topic", "a\"\\\n"}, {"status", "ok"}}).add();
  registry.gauge_from("varve_c", "Read late.", [] { return 1e300 * 1e300; });
  EXPECT_EQ(registry.to_prometheus_text(),
            "# HELP varve_a_total A counter\\nof two lines.\n"
            "# TYPE varve_a_total counter\n"
            "varve_a_total{topic=\"a\\\"\\\\\\n\",status=\"ok\"} 1\n"
            "varve_a_total{topic=\"x\",status=\"ok\"} 3\n"
            "# HELP varve_b A gauge.\n"
            "# TYPE varve_b gauge\n"
            "varve_b -2.5\n"
            "# HELP varve_c Read late.\n"
            "# TYPE varve_c gauge\n"
            "varve_c +Inf\n");
}

TEST(Metrics, HistogramBucketsAreCumulativeAndIncludeTheirBound) {
  MetricRegistry registry;
  Histogram& histogram = registry.histogram("kafscale_produce_latency_ms", "Produce.", kLatencyMsBuckets);
  histogram.observe(1.0);
  histogram.observe(1.5);
  histogram.observe(9000.0);
  histogram.observe(Duration(2ms));
  std::string text = registry.to_prometheus_text();
  EXPECT_THAT(text, HasSubstr("kafscale_produce_latency_ms_bucket{le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("kafscale_produce_latency_ms_bucket{le=\"2\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("kafscale_produce_latency_ms_bucket{le=\"5000\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("kafscale_produce_latency_ms_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("kafscale_produce_latency_ms_sum 9004.5\n"));
  EXPECT_THAT(text, HasSubstr("kafscale_produce_latency_ms_count 4\n"));
}

TEST(Metrics, ADurationIsCountedInTheUnitOfTheName) {
  MetricRegistry registry;
  Histogram& seconds = registry.histogram("varve_put_seconds", "", kStageSecondsBuckets);
  seconds.observe(Duration(250ms));
  EXPECT_DOUBLE_EQ(seconds.sum(), 0.25);
  Histogram& sizes = registry.histogram("varve_put_bytes", "", kStageSecondsBuckets);
  EXPECT_DEATH(sizes.observe(Duration(1ms)), "no unit of time");
}

TEST(Metrics, SeriesBeyondTheLimitShareOne) {
  MetricRegistry registry(Limits::tiny());
  for (int i = 0; i < 100; ++i) registry.counter("varve_t_total", "", {{"topic", std::to_string(i)}}).add();
  EXPECT_EQ(&registry.counter("varve_t_total", "", {{"topic", "98"}}),
            &registry.counter("varve_t_total", "", {{"topic", "99"}}));
  EXPECT_THAT(registry.to_prometheus_text(), HasSubstr("varve_t_total{topic=\"_other\"} 92\n"));
}

TEST(Metrics, TheSameNameGivesTheSameInstrumentAndAnotherKindIsABug) {
  MetricRegistry registry;
  Counter& counter = registry.counter("varve_x_total", "");
  EXPECT_EQ(&counter, &registry.counter("varve_x_total", ""));
  EXPECT_DEATH(registry.gauge("varve_x_total", ""), "registered twice");
  EXPECT_DEATH(registry.counter("varve_x_total", "", {{"topic", "a"}}), "registered twice");
  EXPECT_DEATH(registry.counter("varve-x", ""), "bad metric name");
}

TEST(Metrics, LoseNoUpdateWhenThreadsMeet) {
  MetricRegistry registry;
  Counter& counter = registry.counter("varve_x_total", "");
  Gauge& gauge = registry.gauge("varve_g", "");
  Histogram& histogram = registry.histogram("varve_h_seconds", "", kStageSecondsBuckets);
  auto work = [&] {
    for (int i = 0; i < 10'000; ++i) {
      counter.add();
      gauge.add(1);
      histogram.observe(0.5);
      if (i % 1000 == 0) registry.to_prometheus_text();
    }
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.get();
  EXPECT_EQ(counter.value(), 20'000u);
  EXPECT_EQ(gauge.value(), 20'000);
  EXPECT_EQ(histogram.count(), 20'000u);
  EXPECT_EQ(histogram.sum(), 10'000);
}

}  // namespace
}  // namespace varve
