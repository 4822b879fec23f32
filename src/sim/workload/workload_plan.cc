#include "sim/workload/workload_plan.h"

#include <array>

namespace varve::sim {
namespace {

template <class T, size_t N>
T one_of(Random& random, const std::array<T, N>& choices) {
  return choices[random.below(N)];
}

std::vector<AdminTopic> draw_topics(Random& random) {
  std::vector<AdminTopic> topics;
  topics.push_back({.name = "lasting", .partitions = static_cast<uint32_t>(random.between(1, 4))});
  topics.push_back({.name = "stamped", .partitions = 1, .stamps_append_time = true});
  topics.push_back({.name = "mortal",
                    .partitions = static_cast<uint32_t>(random.between(1, 2)),
                    .mean_life = Duration(random.between(Duration(4s).count(), Duration(20s).count()))});
  return topics;
}

ProducerOptions draw_producer(Random& random, int number, bool is_heavy) {
  ProducerOptions options;
  options.number = number;
  client::ProducerOptions& client = options.client;
  client.is_idempotent = number != 2;
  client.requests_in_flight_max = static_cast<size_t>(random.between(1, 5));
  client.linger = one_of(random, std::array<Duration, 3>{0ms, 5ms, 50ms});
  // Few records a batch, as small limits allow, so that many batches of a partition are under way.
  client.batch_bytes_max = one_of(random, std::array<size_t, 3>{1, 300, 1'000});
  options.mean_gap = Duration(random.between(Duration(50ms).count(), Duration(600ms).count()));
  // The first one keeps changing its broker in mid-sequence.
  options.switch_per_mille = number == 0 ? 300 : one_of(random, std::array<uint32_t, 3>{0, 10, 100});
  client.request_timeout = Duration(random.between(Duration(3s).count(), Duration(20s).count()));
  client.ack_timeout = Duration(random.between(Duration(500ms).count(), Duration(10s).count()));
  client.delivery_timeout = 60min;
  if (random.chance(1, 3)) client.codec = one_of(random, kAllCodecs);
  options.records_max = static_cast<uint32_t>(random.between(1, 8));
  options.value_bytes_max = one_of(random, std::array<uint32_t, 3>{16, 100, 400});
  if (is_heavy) {
    options.mean_gap = Duration(random.between(Duration(10ms).count(), Duration(60ms).count()));
    options.records_max = 8;
    options.value_bytes_max = 400;
  }
  options.topics = {"lasting"};
  if (random.chance(1, 2)) options.topics.emplace_back("stamped");
  if (number == 1 || random.chance(1, 3)) options.topics.emplace_back("mortal");
  if (number == 3) options.topics = {"mortal"};
  if (options.topics.back() != "mortal" && client.codec != Codec::kZstd && random.chance(1, 2)) {
    options.version = static_cast<int16_t>(random.between(3, 12));
  }
  if (random.chance(1, 3)) {
    client.delivery_timeout = Duration(random.between(Duration(2s).count(), Duration(30s).count()));
  }
  if (!client.is_idempotent) {
    client.acks = one_of(random, std::array<int16_t, 4>{-1, -1, 1, 0});
    client.sends_again = random.chance(1, 3);
  }
  return options;
}

ConsumerOptions draw_consumer(Random& random, int number) {
  ConsumerOptions options;
  options.number = number;
  options.topics = {"lasting", "stamped"};
  if (number == 0) options.topics.emplace_back("mortal");
  options.uses_sessions = random.chance(1, 2);
  options.switch_per_mille = one_of(random, std::array<uint32_t, 3>{0, 30, 300});
  options.max_wait = Duration(random.between(Duration(10ms).count(), Duration(2s).count()));
  options.min_bytes = one_of(random, std::array<int32_t, 3>{0, 1, 500});
  options.partition_max_bytes = one_of(random, std::array<int32_t, 3>{1, 1'000, 64'000});
  // One batch a fetch: waiting for more would take for ever.
  if (options.partition_max_bytes == 1) options.min_bytes = 1;
  // Zstd is not given to clients below Fetch 10.
  if (number != 0 && random.chance(1, 2)) options.version = static_cast<int16_t>(random.between(10, 12));
  return options;
}

}  // namespace

WorkloadPlan WorkloadPlan::draw(Random& random) {
  WorkloadPlan plan;
  plan.has_early_acks = random.chance(1, 10);
  plan.topics = draw_topics(random);
  if (random.chance(2, 3)) {
    plan.tender = TenderOptions{
        .topic = "lasting",
        .mean_gap = Duration(random.between(Duration(500ms).count(), Duration(5s).count())),
        .partitions_max = plan.topics[0].partitions + static_cast<uint32_t>(random.between(0, 3))};
  }
  // More than small limits let in at once.
  bool is_heavy = random.chance(1, 4);
  int producers = static_cast<int>(random.between(3, 5));
  for (int i = 0; i < producers; ++i) plan.producers.push_back(draw_producer(random, i, is_heavy));
  int consumers = static_cast<int>(random.between(2, 3));
  for (int i = 0; i < consumers; ++i) plan.consumers.push_back(draw_consumer(random, i));
  return plan;
}

}  // namespace varve::sim
