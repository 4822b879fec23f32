// Changing configs: what AlterConfigs and IncrementalAlterConfigs share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broker/handlers/config_resources.h"

namespace varve::broker {

// Kafka's AlterConfigOp.OpType, as IncrementalAlterConfigs says it.
enum class ConfigOperation : int8_t { kSet = 0, kDelete = 1, kAppend = 2, kSubtract = 3 };

struct ConfigEdit {
  std::string name;
  int8_t operation = static_cast<int8_t>(ConfigOperation::kSet);  // any number, as the client sent it
  std::optional<std::string> value;
};

struct ResourceEdits {
  int8_t type = 0;
  std::string name;
  std::vector<ConfigEdit> edits;
};

struct AlterationRequest {
  std::vector<ResourceEdits> resources;
  bool validate_only = false;
  // AlterConfigs: what is not named goes back to its default, and loggers cannot be changed.
  bool replaces_all = false;
};

// Checks each resource by itself and changes those without a problem, all of its configs or none; returns when this
// broker has applied the changes. One for each resource, in their order; nullopt: done.
runtime::Task<std::vector<std::optional<ConfigProblem>>> alter_configs(Services& services,
                                                                       RequestContext context,
                                                                       AlterationRequest request);

// The answer to either request: a row a resource, in their order.
template <class Response, class Request>
Response alteration_response(Request& request, std::vector<std::optional<ConfigProblem>> problems) {
  Response response;
  for (size_t i = 0; i < problems.size(); ++i) {
    auto& row = response.responses.emplace_back();
    row.resource_type = request.resources[i].resource_type;
    row.resource_name = std::move(request.resources[i].resource_name);
    row.error_message = std::nullopt;
    if (!problems[i]) continue;
    row.error_code = problems[i]->code;
    if (!problems[i]->message.empty()) row.error_message = std::move(problems[i]->message);
  }
  return response;
}

// The topic's configs after the edits, `set` being what is set now; as they are kept. Pure.
Result<TopicConfigs, ConfigProblem> edited_topic_configs(const TopicConfigs& set,
                                                         const std::vector<ConfigEdit>& edits,
                                                         bool replaces_all);

}  // namespace varve::broker
