#include <fmt/format.h>

#include <algorithm>

#include "broker/handlers/broker_configs.h"
#include "broker/handlers/config_resources.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/mentions.h"
#include "broker/handlers/topic_lookup.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {
namespace {

using protocol::DescribeConfigsRequest;
using protocol::DescribeConfigsResponse;
using protocol::ErrorCode;
using Asked = DescribeConfigsRequest::DescribeConfigsResource;
using ResultRow = DescribeConfigsResponse::DescribeConfigsResult;
using ConfigRow = DescribeConfigsResponse::DescribeConfigsResourceResult;
using Described = Result<std::vector<DescribedConfig>, ConfigProblem>;

// Kafka's DescribeConfigsResponse.ConfigType.
int8_t type_number(ConfigType type) {
  switch (type) {
    case ConfigType::kBoolean:
      return 1;
    case ConfigType::kString:
      return 2;
    case ConfigType::kInt:
      return 3;
    case ConfigType::kLong:
      return 5;
    case ConfigType::kDouble:
      return 6;
    case ConfigType::kList:
      return 7;
  }
  return 0;
}

std::unexpected<ConfigProblem> refuse(ErrorCode code, std::string message) {
  return std::unexpected(ConfigProblem{code, std::move(message)});
}

Described of_topic(const Services& services, const SyncedImage& synced, const std::string& name) {
  if (auto problem = topic_name_problem(name)) {
    return refuse(ErrorCode::kInvalidTopicException, std::move(*problem));
  }
  // What was acknowledged elsewhere is never contradicted.
  if (!synced.is_certain) return refuse(kCannotTellAdmin, "this broker has lost touch with the metadata log");
  const metadata::TopicView* topic = synced.image->find_topic(name);
  if (topic != nullptr) return topic_configs_of(topic->configs, services.settings.limits);
  return refuse(ErrorCode::kUnknownTopicOrPartition, "");
}

Described of_broker(const Services& services, const SyncedImage& synced, const std::string& name) {
  // Nothing is set for all brokers at once.
  if (name.empty()) return std::vector<DescribedConfig>();
  if (auto problem = broker_name_problem(services.settings, name))
    return std::unexpected(std::move(*problem));
  std::vector<std::string> addresses;
  auto self = synced.image->brokers.find(services.settings.broker_id);
  if (self != synced.image->brokers.end()) {
    for (const metadata::Endpoint& endpoint : self->second.endpoints) {
      addresses.push_back(fmt::format("{}://{}:{}", endpoint.listener, endpoint.host, endpoint.port));
    }
  }
  return broker_configs(services.settings, fmt::format("{}", fmt::join(addresses, ",")));
}

Described of_logger(const Services& services, const std::string& name) {
  if (auto problem = broker_name_problem(services.settings, name))
    return std::unexpected(std::move(*problem));
  DescribedConfig root;
  root.name = kRootLogger;
  root.value = log_level_text(services.logger);
  return std::vector<DescribedConfig>{std::move(root)};
}

Described configs_of(const Services& services, const SyncedImage& synced, ConfigResource type,
                     const std::string& name) {
  switch (type) {
    case ConfigResource::kTopic:
      return of_topic(services, synced, name);
    case ConfigResource::kBroker:
      return of_broker(services, synced, name);
    case ConfigResource::kBrokerLogger:
      return of_logger(services, name);
    case ConfigResource::kClientMetrics:
      if (name.empty()) return refuse(ErrorCode::kInvalidRequest, "a subscription to metrics needs a name");
      return client_metrics_configs();
    case ConfigResource::kGroup:
      if (name.empty()) return refuse(ErrorCode::kInvalidRequest, "a group needs a name");
      return group_configs();
  }
  return refuse(ErrorCode::kInvalidRequest, "no such type of resource");
}

ConfigRow config_row(DescribedConfig config, const DescribeConfigsRequest& request, bool is_logger) {
  ConfigRow row;
  row.name = std::move(config.name);
  row.value = std::move(config.value);
  row.read_only = config.is_read_only;
  row.config_source = static_cast<int8_t>(is_logger ? ConfigSource::kBrokerLogger : config.source());
  // Kafka tells no type of a logger.
  row.config_type = is_logger ? int8_t{0} : type_number(config.type);
  row.documentation = std::nullopt;
  if (request.include_documentation && !config.help.empty()) row.documentation = config.help;
  if (!request.include_synonyms) return row;
  for (ConfigValue& value : config.values) {
    auto& synonym = row.synonyms.emplace_back();
    synonym.name = std::move(value.name);
    synonym.value = std::move(value.value);
    synonym.source = static_cast<int8_t>(value.source);
  }
  return row;
}

ResultRow named_row(const Asked& asked) {
  ResultRow row;
  row.resource_type = asked.resource_type;
  row.resource_name = asked.resource_name;
  return row;
}

ResultRow result_row(const Services& services, const SyncedImage& synced, const Asked& asked,
                     const DescribeConfigsRequest& request) {
  ResultRow row = named_row(asked);
  ConfigResource type = *config_resource_of(asked.resource_type);
  Described configs = configs_of(services, synced, type, asked.resource_name);
  if (!configs) {
    row.error_code = configs.error().code;
    row.error_message = std::move(configs.error().message);
    return row;
  }
  const auto& keys = asked.configuration_keys;
  for (DescribedConfig& config : *configs) {
    // No list and an empty one ask for all.
    if (keys && !keys->empty() && std::ranges::find(*keys, config.name) == keys->end()) continue;
    row.configs.push_back(config_row(std::move(config), request, type == ConfigResource::kBrokerLogger));
  }
  return row;
}

}  // namespace

HandlerTask<DescribeConfigsResponse> handle_describe_configs(Services& services,
                                                             const RequestContext& context,
                                                             DescribeConfigsRequest request) {
  DescribeConfigsResponse response;
  auto is_known = [](const Asked& asked) { return config_resource_of(asked.resource_type).has_value(); };
  if (!std::ranges::all_of(request.resources, is_known)) {
    // As Kafka: one type that it does not know refuses the whole request.
    for (const Asked& asked : request.resources) {
      ResultRow& row = response.results.emplace_back(named_row(asked));
      row.error_code = ErrorCode::kInvalidRequest;
      row.error_message = "the request names a resource of unknown type";
    }
    co_return response;
  }
  // So that whoever was told of a change finds it here too.
  SyncedImage synced = co_await synced_image(services, context.deadline);
  std::vector<ResultRow> denied;
  Mentions<std::pair<int8_t, std::string_view>> mentions;
  for (const Asked& asked : request.resources) {
    if (mentions.is_too_often({asked.resource_type, asked.resource_name})) {
      ResultRow& row = response.results.emplace_back(named_row(asked));
      row.error_code = ErrorCode::kInvalidRequest;
      row.error_message = "the request names the resource more than twice";
      continue;
    }
    ErrorCode denial = denial_on(services, context, Operation::kDescribeConfigs,
                                 *config_resource_of(asked.resource_type), asked.resource_name);
    if (denial == ErrorCode::kNone) {
      response.results.push_back(result_row(services, synced, asked, request));
      continue;
    }
    ResultRow& row = denied.emplace_back(named_row(asked));
    row.error_code = denial;
    row.error_message = "the client may not look at its configs";
  }
  // Kafka answers them last.
  std::ranges::move(denied, std::back_inserter(response.results));
  co_return response;
}

}  // namespace varve::broker
