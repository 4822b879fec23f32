// One broker's metadata client in a simulated world, for tests of one thing at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "metadata/client/metadata_client.h"
#include "runtime/task_scope.h"
#include "sim/metadata_log.h"
#include "sim/node.h"

namespace varve::sim {

// One broker's metadata client and what it stands on.
struct ClientUnderTest {
  using Log = std::unique_ptr<metadata::MetadataLog>;

  // Starts at once. The clock is ahead of the world's by `clock_offset`; `wrap_log` may stand before the log.
  ClientUnderTest(World& world, SimMetadataLog& shared_log,
                  std::unique_ptr<object_store::ObjectStore> store_in, int32_t id, PlantedBugs bugs = {},
                  Duration clock_offset = {}, const std::function<Log(Log)>& wrap_log = nullptr)
      : node(world, {.host = fmt::format("broker{}", id), .clock_offset = clock_offset}),
        log(wrap_log ? wrap_log(shared_log.client(node.process())) : shared_log.client(node.process())),
        store(std::move(store_in)),
        client(node.process(), *log, *store, config_of(id), logger, metrics, bugs) {
    scope.spawn(node.process().io(0), "start", start());
  }
  static metadata::ClientConfig config_of(int32_t id) {
    metadata::ClientConfig config;
    config.broker = BrokerId(id);
    config.key_prefix = "default";
    config.snapshot_after_bytes = 2000;
    return config;
  }
  runtime::Task<> start() { started = co_await client.start(); }
  // Makes topics, one after the other.
  runtime::Task<> make_topics() {
    for (int i = 0; !is_over; ++i) {
      metadata::CreateTopic topic;
      topic.id = Random(node.process().random_seed()).uuid();
      topic.name = fmt::format("topic-{}", i);
      topic.partitions = 1;
      co_await client.propose(topic);
      co_await runtime::sleep_for(50ms);
    }
  }

  Logger logger;
  MetricRegistry metrics;
  Node node;
  Log log;
  std::unique_ptr<object_store::ObjectStore> store;
  metadata::MetadataClient client;
  std::optional<Result<void, metadata::StartError>> started;
  bool is_over = false;
  runtime::TaskScope scope;  // first to go
};

}  // namespace varve::sim
