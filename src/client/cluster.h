// Cluster: which brokers there are, who leads and coordinates what, and a connection to each.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/connection.h"
#include "client/topic_partition.h"
#include "protocol/messages/metadata.h"

namespace varve::client {

struct ClusterOptions {
  std::vector<runtime::Address> bootstrap;
  std::string client_id = "varve";
  Duration connect_timeout = 10s;
  Duration request_timeout = 30s;
  Duration metadata_age_max = 5min;
  // Between two tries of the same thing; doubles from the first to the second, with a jitter of a fifth.
  Duration backoff_min = 100ms;
  Duration backoff_max = 1s;
  // Which of the versions that both sides know to use for an API; null: the highest.
  std::function<int16_t(protocol::ApiKey, VersionRange)> choose_version{};
  // Hears what a broker says of a topic, and when it was asked; null: nobody does.
  std::function<void(const std::string& topic, MonotonicTime asked_at, const ClientResult<TopicInfo>&)>
      heard_of_topic{};
};

// A broker handles the requests of one connection in turn: what may wait there for long (a join, a fetch) takes a
// lane of its own, which is a connection of its own to each broker; whoever took it closes it.
enum class Lane : uint64_t { kShared };

struct AskOptions {
  Lane lane = Lane::kShared;
  VersionRange versions{};
  Duration timeout{0};  // 0: request_timeout of the cluster
};

// What it knows may be old: who gets an error that says so forgets it and asks again. It does not try again by itself,
// but for finding a broker that can be reached.
// Life: close() and await it, then destroy; or destroy where its tasks cannot run any more. Outlives its users, which
// are on the same executor.
class Cluster {
 public:
  using ConnectionPtr = std::shared_ptr<Connection>;

  Cluster(runtime::Runtime& runtime, runtime::Executor& executor, ClusterOptions options);
  runtime::Task<> close();

  const ClusterOptions& options() const { return options_; }
  runtime::Executor& executor() { return executor_; }
  MonotonicTime now() const { return executor_.now(); }
  WallTime wall_now() const { return runtime_.wall_now(); }
  Lane new_lane() { return Lane{++last_lane_}; }
  // Ends its connections. Nobody uses the lane any more.
  void close_lane(Lane lane);
  // Before try number `tries` + 1.
  Duration backoff(size_t tries);

  // The open connection to the broker, or a new one that knows its versions. kDisconnected also for an id that nobody
  // told of.
  runtime::Task<ClientResult<ConnectionPtr>> connect(BrokerId broker, Lane lane = Lane::kShared);
  // The open connection, if there is one.
  ConnectionPtr find_open(BrokerId broker, Lane lane = Lane::kShared) const;
  // To any broker, by chance; each is tried once.
  runtime::Task<ClientResult<ConnectionPtr>> connect_any();

  // As last heard, unless that is too old. Topics are never created by asking. Kafka's error for the topic as kRefused.
  runtime::Task<ClientResult<TopicInfo>> topic(std::string name);
  void forget_topic(const std::string& name) { topics_.erase(name); }
  // The broker that coordinates a group (KIP-98: key type 0).
  runtime::Task<ClientResult<BrokerId>> coordinator(std::string group);
  void forget_coordinator(const std::string& group) { coordinators_.erase(group); }
  runtime::Task<ClientResult<BrokerId>> controller();
  // All that were named last; asks if none was yet.
  runtime::Task<ClientResult<std::vector<BrokerId>>> brokers();

  // One request, one answer; whatever errors the answer holds are the caller's to read.
  template <class Request>
  runtime::Task<ClientResult<typename Request::Response>> ask_on(ConnectionPtr connection, Request request,
                                                                 AskOptions options = {}) {
    auto version = version_of<Request>(*connection, options.versions);
    if (!version) co_return pass_error(version);
    co_return co_await Connection::ask(std::move(connection), std::move(request), *version,
                                       deadline(options));
  }
  template <class Request>
  runtime::Task<ClientResult<typename Request::Response>> ask(BrokerId broker, Request request,
                                                              AskOptions options = {}) {
    auto connection = co_await connect(broker, options.lane);
    if (!connection) co_return pass_error(connection);
    co_return co_await ask_on(std::move(*connection), std::move(request), options);
  }
  template <class Request>
  runtime::Task<ClientResult<typename Request::Response>> ask_any(Request request, AskOptions options = {}) {
    auto connection = co_await connect_any();
    if (!connection) co_return pass_error(connection);
    co_return co_await ask_on(std::move(*connection), std::move(request), options);
  }
  template <class Request>
  runtime::Task<ClientResult<typename Request::Response>> ask_controller(Request request,
                                                                         AskOptions options = {}) {
    auto broker = co_await controller();
    if (!broker) co_return pass_error(broker);
    co_return co_await ask(*broker, std::move(request), options);
  }
  template <class Request>
  runtime::Task<ClientResult<typename Request::Response>> ask_coordinator(std::string group, Request request,
                                                                          AskOptions options = {}) {
    auto broker = co_await coordinator(std::move(group));
    if (!broker) co_return pass_error(broker);
    co_return co_await ask(*broker, std::move(request), options);
  }
  // The version for the next `Request` on the connection.
  template <class Request>
  ClientResult<int16_t> version_of(const Connection& connection, VersionRange wanted = {}) const {
    auto range = connection.versions_of<Request>(wanted);
    if (!range) return pass_error(range);
    return options_.choose_version ? options_.choose_version(Request::kApiKey, *range) : range->high;
  }

 private:
  using Place = std::pair<runtime::Address, Lane>;

  ConnectionPtr open_at(const Place& place) const;
  runtime::Task<ClientResult<ConnectionPtr>> connect_to(Place place);
  runtime::Task<ClientResult<protocol::MetadataResponse>> ask_metadata(protocol::MetadataRequest request);
  MonotonicTime deadline(const AskOptions& options) const {
    return now() + (options.timeout == Duration{0} ? options_.request_timeout : options.timeout);
  }

  runtime::Runtime& runtime_;
  runtime::Executor& executor_;
  const ClusterOptions options_;
  Random random_;
  uint64_t last_lane_ = 0;
  std::map<Place, ConnectionPtr> connections_;
  std::map<BrokerId, runtime::Address> brokers_;
  BrokerId controller_ = kNoBroker;
  std::map<std::string, TopicInfo> topics_;
  std::map<std::string, BrokerId> coordinators_;
  runtime::TaskScope scope_;  // of the connections; last: its frames use all of the above
};

}  // namespace varve::client
