#include "sim/workload/topic_tender.h"

#include "protocol/messages/create_partitions.h"
#include "protocol/messages/delete_records.h"
#include "protocol/messages/describe_configs.h"
#include "protocol/messages/incremental_alter_configs.h"

namespace varve::sim {

using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr int8_t kTopicResource = 2;
constexpr const char* kConfig = "retention.ms";
constexpr const char* kConfigDefault = "604800000";
constexpr int16_t kDescribeVersion = 4;

}  // namespace

TopicTender::TopicTender(WorkloadContext& context, Process& process, TenderOptions options)
    : client_(context, process, "tender"), options_(std::move(options)) {}

void TopicTender::start() { client_.scope().spawn(client_.executor(), "tend topic", run()); }

Task<> TopicTender::run() {
  for (;;) {
    co_await runtime::sleep_for(Duration(client_.random().between(0, 2 * options_.mean_gap.count())));
    if (client_.context().is_over) break;
    switch (client_.random().below(3)) {
      case 0:
        co_await widen();
        break;
      case 1:
        co_await delete_records();
        break;
      default:
        co_await alter();
    }
  }
  is_finished_ = true;
}

bool TopicTender::is_open(ErrorCode code, const std::string& what, const std::string& host) {
  bool is_expected = code == ErrorCode::kRequestTimedOut || code == ErrorCode::kNotController ||
                     code == ErrorCode::kNotLeaderOrFollower || code == ErrorCode::kThrottlingQuotaExceeded;
  client_.context().findings.require(is_expected, "{} answers {} with error {}", who(host, client_), what,
                                     static_cast<int16_t>(code));
  client_.context().world.happened(fmt::format("client.tender_error_{}", static_cast<int16_t>(code)));
  return is_expected;
}

Task<> TopicTender::widen() {
  std::string host = client_.any_host();
  auto known = co_await client_.find_topic(host, options_.topic);
  if (!known || known->partitions >= options_.partitions_max) co_return;
  uint32_t count = known->partitions + 1;
  TopicBook& topics = client_.context().topics;
  topics.ask_partitions(known->id, count);
  protocol::CreatePartitionsRequest request;
  request.timeout_ms = 10'000;
  auto& topic = request.topics.emplace_back();
  topic.name = options_.topic;
  topic.count = static_cast<int32_t>(count);
  topic.assignments = std::nullopt;
  int16_t version = client_.draw_version<protocol::CreatePartitionsRequest>();
  auto response = co_await client_.ask(host, std::move(request), version);
  ErrorCode code = response ? response->results.at(0).error_code : ErrorCode::kRequestTimedOut;
  client_.context().world.trace("widening {} to {} at {}: error {}", options_.topic, count, host,
                                static_cast<int16_t>(code));
  // An earlier try may have come through.
  if (code == ErrorCode::kInvalidPartitions) co_return;
  if (code != ErrorCode::kNone) {
    is_open(code, "CreatePartitions", host);
    co_return;
  }
  topics.told_of(options_.topic, known->id, count);
  topics.host_told(host, known->id, count, known->partitions);
  // What was acknowledged is there at once; whatever is wrong with the answer is a finding.
  co_await client_.find_topic(host, options_.topic);
}

Task<> TopicTender::delete_records() {
  std::string host = client_.any_host();
  auto known = co_await client_.find_topic(host, options_.topic);
  if (!known) co_return;
  PartitionKey key{known->id,
                   PartitionIndex(static_cast<int32_t>(client_.random().below(known->partitions)))};
  History& history = client_.context().history;
  Offset first = history.deleted_records(key).asked.plus(1);
  Offset last = history.acked_end(key);
  if (last < first) co_return;
  Offset end(client_.random().between(first.value(), last.value()));
  history.ask_deletion(key, end);
  protocol::DeleteRecordsRequest request;
  request.timeout_ms = 10'000;
  auto& topic = request.topics.emplace_back();
  topic.name = options_.topic;
  auto& partition = topic.partitions.emplace_back();
  partition.partition_index = key.partition;
  partition.offset = end;
  int16_t version = client_.draw_version<protocol::DeleteRecordsRequest>();
  auto response = co_await client_.ask(host, std::move(request), version);
  ErrorCode code = ErrorCode::kRequestTimedOut;
  if (response) code = response->topics.at(0).partitions.at(0).error_code;
  client_.context().world.trace("deleting {} up to {} at {}: error {}", key.to_string(), end, host,
                                static_cast<int16_t>(code));
  if (code == ErrorCode::kNone) {
    history.records_deleted(key, response->topics[0].partitions[0].low_watermark, who(host, client_));
    client_.context().world.happened("client.records_deleted");
  } else {
    is_open(code, "DeleteRecords", host);
  }
}

Task<> TopicTender::alter() {
  std::string host = client_.any_host();
  std::string value = std::to_string(client_.random().between(1, INT64_C(1) << 40));
  protocol::IncrementalAlterConfigsRequest request;
  auto& resource = request.resources.emplace_back();
  resource.resource_type = kTopicResource;
  resource.resource_name = options_.topic;
  auto& config = resource.configs.emplace_back();
  config.name = kConfig;
  config.value = value;
  int16_t version = client_.draw_version<protocol::IncrementalAlterConfigsRequest>();
  MonotonicTime asked_at = client_.now();
  open_values_.insert(value);
  auto response = co_await client_.ask(host, std::move(request), version);
  ErrorCode code = response ? response->responses.at(0).error_code : ErrorCode::kRequestTimedOut;
  client_.context().world.trace("setting {} of {} to {} at {}: error {}", kConfig, options_.topic, value,
                                host, static_cast<int16_t>(code));
  if (code == ErrorCode::kUnknownTopicOrPartition) {
    client_.context().topics.called_absent(options_.topic, asked_at, who(host, client_));
    co_return;
  }
  if (code != ErrorCode::kNone) {
    is_open(code, "IncrementalAlterConfigs", host);
    co_return;
  }
  open_values_.erase(value);
  acked_value_ = value;
  co_await look_at_config(host);
}

Task<> TopicTender::look_at_config(std::string host) {
  std::string other = client_.other_host(host);
  protocol::DescribeConfigsRequest request;
  auto& resource = request.resources.emplace_back();
  resource.resource_type = kTopicResource;
  resource.resource_name = options_.topic;
  resource.configuration_keys = {kConfig};
  auto response = co_await client_.ask(other, std::move(request), kDescribeVersion);
  if (!response || response->results.at(0).error_code != ErrorCode::kNone) co_return;
  std::string value = response->results[0].configs.at(0).value.value_or("");
  client_.context().findings.require(
      value == acked_value_.value_or(kConfigDefault) || open_values_.contains(value),
      "{} tells {}={} of '{}', and {} was acknowledged", who(other, client_), kConfig, value, options_.topic,
      acked_value_.value_or("nothing"));
}

}  // namespace varve::sim
