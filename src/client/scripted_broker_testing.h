// For tests of the client: a broker that answers what the test says, on a simulated machine, and a client beside it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cluster.h"
#include "client/frame_io.h"
#include "protocol/messages/api_versions.h"
#include "protocol/messages/find_coordinator.h"
#include "protocol/messages/metadata.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/run_task.h"
#include "sim/world.h"

namespace varve::client {

// Knows every API and version that we have codecs for. Requests of one connection are answered in turn; what no script
// is for ends the connection.
class ScriptedBroker {
 public:
  static constexpr uint16_t kPort = 9092;

  ScriptedBroker(sim::World& world, sim::SimNetwork& network, std::string host)
      : node_(world, {.host = std::move(host)}, &network) {
    on<protocol::ApiVersionsRequest>([](const auto&, int16_t) {
      protocol::ApiVersionsResponse response;
      for (const protocol::ApiInfo& api : protocol::known_apis()) {
        auto& row = response.api_keys.emplace_back();
        row.api_key = static_cast<int16_t>(api.key);
        row.min_version = api.min_version;
        row.max_version = api.max_version;
      }
      return response;
    });
    auto listener = node_.process().network().listen(node_.process().io(0), {"", kPort});
    CHECK(listener, "{}", listener.error().message);
    listener_ = std::move(*listener);
    scope_.spawn(node_.process().io(0), "accept", accept_loop());
  }

  // nullopt: no answer, and the connection stays.
  template <class Request>
  using Script = std::function<std::optional<typename Request::Response>(const Request&, int16_t version)>;
  template <class Request>
  void on(Script<Request> script) {
    on_frame(Request::kApiKey, [script = std::move(script)](const Slice& body, int16_t version,
                                                            int32_t correlation) {
      auto request = protocol::decode_message<Request>(body, version);
      CHECK(request, "{}", request.error().message);
      auto response = script(*request, version);
      return response ? protocol::response_frame(*response, version, correlation) : std::vector<Slice>();
    });
  }
  // The frame of the answer; empty: none.
  using FrameScript =
      std::function<std::vector<Slice>(const Slice& body, int16_t version, int32_t correlation)>;
  void on_frame(protocol::ApiKey key, FrameScript script) { scripts_[key] = std::move(script); }
  // Knows the topics by number of partitions, leads them all, and coordinates every group.
  void lead(std::map<std::string, uint32_t> topics) {
    topics_ = std::move(topics);
    on<protocol::MetadataRequest>(
        [this](const protocol::MetadataRequest& request, int16_t) { return metadata(request); });
    on<protocol::FindCoordinatorRequest>([this](const auto& request, int16_t) {
      protocol::FindCoordinatorResponse response;
      response.host = node_.host();
      response.port = kPort;
      for (const std::string& key : request.coordinator_keys) {
        auto& row = response.coordinators.emplace_back();
        row.key = key;
        row.host = node_.host();
        row.port = kPort;
      }
      return response;
    });
  }
  // Of the topic's two partitions the first is looked up in a second life, which one broker knows of already and others do
  // not; all that is looked up later is in the first.
  void lead_two_lives(const std::string& name) {
    on<protocol::MetadataRequest>([this, name, times = 0](const auto&, int16_t) mutable {
      protocol::MetadataResponse response;
      auto& broker = response.brokers.emplace_back();
      broker.host = node_.host();
      broker.port = kPort;
      auto& topic = response.topics.emplace_back();
      topic.name = name;
      topic.topic_id = id_of(++times == 1 ? "second" : "first");
      topic.partitions.resize(2);
      topic.partitions[1].partition_index = PartitionIndex(1);
      return response;
    });
  }
  static Uuid id_of(const std::string& topic) {
    Uuid id;
    for (size_t i = 0; i < topic.size() && i < id.bytes.size(); ++i)
      id.bytes[i] = static_cast<uint8_t>(topic[i]);
    return id;
  }

  void cut_connections() {
    for (auto& weak : streams_) {
      if (auto stream = weak.lock()) stream->close();
    }
  }
  size_t open_connections() const {
    return static_cast<size_t>(
        std::ranges::count_if(streams_, [](const auto& stream) { return !stream.expired(); }));
  }
  sim::Node& node() { return node_; }
  std::map<protocol::ApiKey, size_t> asked;  // how often

 private:
  runtime::Task<> accept_loop() {
    for (;;) {
      auto stream = co_await listener_->accept(node_.process().io(0));
      if (!stream) co_return;
      std::shared_ptr<runtime::Stream> shared = std::move(*stream);
      streams_.push_back(shared);
      scope_.spawn(node_.process().io(0), "serve", serve(shared));
    }
  }
  runtime::Task<> serve(std::shared_ptr<runtime::Stream> stream) {
    for (;;) {
      auto frame = co_await read_frame(*stream, kMiB * 10);
      if (!frame) break;
      int16_t key = load_be<int16_t>(frame->data());
      const protocol::ApiInfo* api = protocol::find_api(key);
      CHECK(api != nullptr, "an unknown API");
      auto version = load_be<int16_t>(frame->data() + 2);
      protocol::MessageReader reader(*frame);
      protocol::RequestHeader header;
      header.read(reader, api->request_header_version(version));
      ++asked[api->key];
      auto script = scripts_.find(api->key);
      if (script == scripts_.end()) break;
      std::vector<Slice> answer = script->second(reader.rest(), version, header.correlation_id);
      if (!answer.empty() && !co_await write_frame(*stream, std::move(answer))) break;
    }
    stream->close();
  }
  protocol::MetadataResponse metadata(const protocol::MetadataRequest& request) const {
    protocol::MetadataResponse response;
    auto& broker = response.brokers.emplace_back();
    broker.node_id = BrokerId(0);
    broker.host = node_.host();
    broker.port = kPort;
    response.controller_id = BrokerId(0);
    if (!request.topics) return response;
    for (const auto& asked_topic : *request.topics) {
      auto& row = response.topics.emplace_back();
      row.name = asked_topic.name;
      row.topic_id = id_of(*asked_topic.name);
      auto known = topics_.find(*asked_topic.name);
      if (known == topics_.end()) {
        row.error_code = protocol::ErrorCode::kUnknownTopicOrPartition;
        continue;
      }
      for (uint32_t i = 0; i < known->second; ++i) {
        auto& partition = row.partitions.emplace_back();
        partition.partition_index = PartitionIndex(static_cast<int32_t>(i));
        partition.leader_id = BrokerId(0);
      }
    }
    return response;
  }

  sim::Node node_;
  std::map<protocol::ApiKey, FrameScript> scripts_;
  std::map<std::string, uint32_t> topics_;
  std::unique_ptr<runtime::Listener> listener_;
  std::vector<std::weak_ptr<runtime::Stream>> streams_;
  runtime::TaskScope scope_;  // first to go
};

class ScriptedTest : public ::testing::Test {
 protected:
  ScriptedTest()
      : broker_(world_, network_, "broker0"), client_node_(world_, {.host = "client"}, &network_) {}

  runtime::Executor& executor() { return client_node_.process().io(0); }
  ClusterOptions cluster_options() {
    ClusterOptions options;
    options.bootstrap = {{"broker0", ScriptedBroker::kPort}};
    return options;
  }
  std::unique_ptr<Cluster> make_cluster() {
    return std::make_unique<Cluster>(client_node_.process(), executor(), cluster_options());
  }
  // Runs the coroutine function `body` as the client and steps the world until it has ended.
  template <class Body>
  void run(Body body) {
    sim::run_task(world_, executor(), body());
  }

  sim::World world_{{.seed = 1}};
  sim::SimNetwork network_{world_};
  ScriptedBroker broker_;
  sim::Node client_node_;
};

}  // namespace varve::client
