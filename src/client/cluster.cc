#include "client/cluster.h"

#include <algorithm>

#include "protocol/messages/find_coordinator.h"

namespace varve::client {

using protocol::ErrorCode;
using runtime::Address;
using runtime::Task;

namespace {

ClientResult<TopicInfo> info_of(const std::string& name, MonotonicTime asked_at,
                                const protocol::MetadataResponse::MetadataResponseTopic& row) {
  if (row.error_code != ErrorCode::kNone) return refused(row.error_code, fmt::format("topic {}", name));
  TopicInfo info{.id = row.topic_id, .leaders = {}, .asked_at = asked_at};
  info.leaders.assign(row.partitions.size(), kNoBroker);
  for (const auto& partition : row.partitions) {
    auto index = static_cast<size_t>(partition.partition_index.value());
    if (index < info.leaders.size()) info.leaders[index] = partition.leader_id;
  }
  return info;
}

}  // namespace

Cluster::Cluster(runtime::Runtime& runtime, runtime::Executor& executor, ClusterOptions options)
    : runtime_(runtime), executor_(executor), options_(std::move(options)), random_(runtime.random_seed()) {}

Task<> Cluster::close() {
  for (auto& [place, connection] : connections_) connection->close();
  co_await scope_.close();
}

void Cluster::close_lane(Lane lane) {
  std::erase_if(connections_, [lane](const auto& entry) {
    const auto& [place, connection] = entry;
    if (place.second != lane) return false;
    connection->close();
    return true;
  });
}

Duration Cluster::backoff(size_t tries) {
  Duration span = options_.backoff_min * (int64_t{1} << std::min<size_t>(tries, 10));
  span = std::min(span, options_.backoff_max);
  return Duration(random_.between(span.count() * 4 / 5, span.count() * 6 / 5));
}

Task<ClientResult<Cluster::ConnectionPtr>> Cluster::connect(BrokerId broker, Lane lane) {
  auto known = brokers_.find(broker);
  if (known == brokers_.end()) {
    co_return failed(ClientErrc::kDisconnected, fmt::format("nobody told where broker {} is", broker));
  }
  co_return co_await connect_to({known->second, lane});
}

Cluster::ConnectionPtr Cluster::find_open(BrokerId broker, Lane lane) const {
  auto known = brokers_.find(broker);
  return known == brokers_.end() ? nullptr : open_at({known->second, lane});
}

Cluster::ConnectionPtr Cluster::open_at(const Place& place) const {
  auto found = connections_.find(place);
  return found == connections_.end() || found->second->is_closed() ? nullptr : found->second;
}

Task<ClientResult<Cluster::ConnectionPtr>> Cluster::connect_to(Place place) {
  if (ConnectionPtr open = open_at(place)) co_return open;
  MonotonicTime deadline = now() + options_.connect_timeout;
  auto stream = co_await runtime_.network().connect(place.first, deadline);
  if (!stream) {
    co_return failed(ClientErrc::kDisconnected,
                     fmt::format("{}: {}", place.first.to_string(), stream.error().message));
  }
  ConnectionPtr connection =
      Connection::open(executor_, scope_, std::move(*stream), {.client_id = options_.client_id});
  auto negotiated = co_await Connection::negotiate(connection, deadline);
  if (!negotiated) {
    connection->close();
    co_return pass_error(negotiated);
  }
  // Somebody else may have been faster meanwhile.
  if (ConnectionPtr open = open_at(place)) {
    connection->close();
    co_return open;
  }
  connections_.insert_or_assign(place, connection);
  co_return connection;
}

Task<ClientResult<Cluster::ConnectionPtr>> Cluster::connect_any() {
  std::vector<Address> places;
  for (const auto& [id, address] : brokers_) places.push_back(address);
  std::shuffle(places.begin(), places.end(), random_);
  // All brokers may have moved since they were named.
  std::vector<Address> first_places = options_.bootstrap;
  std::shuffle(first_places.begin(), first_places.end(), random_);
  for (Address& place : first_places) {
    if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
  }
  ClientError last{ClientErrc::kDisconnected, {}, "no broker is known"};
  for (const Address& place : places) {
    auto connection = co_await connect_to({place, Lane::kShared});
    if (connection) co_return connection;
    last = std::move(connection.error());
  }
  co_return std::unexpected(std::move(last));
}

Task<ClientResult<protocol::MetadataResponse>> Cluster::ask_metadata(protocol::MetadataRequest request) {
  request.allow_auto_topic_creation = false;
  // The first version that can forbid creating a topic.
  AskOptions options{.versions = {.low = 4}};
  auto response = co_await ask_any(std::move(request), options);
  if (!response) co_return pass_error(response);
  if (response->brokers.empty()) co_return refused(ErrorCode::kBrokerNotAvailable, "Metadata");
  brokers_.clear();
  for (const auto& row : response->brokers) {
    brokers_[row.node_id] = {row.host, static_cast<uint16_t>(row.port)};
  }
  controller_ = response->controller_id;
  co_return std::move(*response);
}

Task<ClientResult<TopicInfo>> Cluster::topic(std::string name) {
  auto known = topics_.find(name);
  if (known != topics_.end() && now() - known->second.asked_at < options_.metadata_age_max) {
    co_return known->second;
  }
  protocol::MetadataRequest request;
  request.topics.emplace();
  request.topics->emplace_back().name = name;
  MonotonicTime asked_at = now();
  auto response = co_await ask_metadata(std::move(request));
  if (!response) co_return pass_error(response);
  if (response->topics.size() != 1) co_return failed(ClientErrc::kMalformed, "Metadata of another topic");
  ClientResult<TopicInfo> answer = info_of(name, asked_at, response->topics.front());
  if (options_.heard_of_topic) options_.heard_of_topic(name, asked_at, answer);
  if (answer) topics_.insert_or_assign(name, *answer);
  co_return answer;
}

Task<ClientResult<BrokerId>> Cluster::coordinator(std::string group) {
  auto known = coordinators_.find(group);
  if (known != coordinators_.end()) co_return known->second;
  protocol::FindCoordinatorRequest request;
  request.key = group;
  request.coordinator_keys = {group};
  auto response = co_await ask_any(std::move(request));
  if (!response) co_return pass_error(response);
  ErrorCode error = response->error_code;
  BrokerId broker = response->node_id;
  Address address{response->host, static_cast<uint16_t>(response->port)};
  if (!response->coordinators.empty()) {
    const auto& row = response->coordinators.front();
    error = row.error_code;
    broker = row.node_id;
    address = {row.host, static_cast<uint16_t>(row.port)};
  }
  if (error != ErrorCode::kNone) co_return refused(error, fmt::format("the coordinator of group {}", group));
  brokers_[broker] = std::move(address);
  coordinators_[group] = broker;
  co_return broker;
}

Task<ClientResult<BrokerId>> Cluster::controller() {
  if (controller_ != kNoBroker) co_return controller_;
  auto known = co_await brokers();
  if (!known) co_return pass_error(known);
  if (controller_ == kNoBroker) co_return refused(ErrorCode::kNotController, "Metadata");
  co_return controller_;
}

Task<ClientResult<std::vector<BrokerId>>> Cluster::brokers() {
  if (brokers_.empty() || controller_ == kNoBroker) {
    protocol::MetadataRequest request;
    request.topics.emplace();  // of no topic
    auto response = co_await ask_metadata(std::move(request));
    if (!response) co_return pass_error(response);
  }
  std::vector<BrokerId> ids;
  for (const auto& [id, address] : brokers_) ids.push_back(id);
  co_return ids;
}

}  // namespace varve::client
