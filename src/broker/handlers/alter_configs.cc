#include "broker/handlers/config_alteration.h"
#include "broker/handlers/handlers.h"

namespace varve::broker {

HandlerTask<protocol::AlterConfigsResponse> handle_alter_configs(Services& services,
                                                                 const RequestContext& context,
                                                                 protocol::AlterConfigsRequest request) {
  AlterationRequest alteration;
  alteration.validate_only = request.validate_only;
  alteration.replaces_all = true;
  for (auto& resource : request.resources) {
    ResourceEdits& edits = alteration.resources.emplace_back();
    edits.type = resource.resource_type;
    edits.name = resource.resource_name;
    for (auto& config : resource.configs) {
      edits.edits.push_back({.name = std::move(config.name), .value = std::move(config.value)});
    }
  }
  auto problems = co_await alter_configs(services, context, std::move(alteration));
  co_return alteration_response<protocol::AlterConfigsResponse>(request, std::move(problems));
}

}  // namespace varve::broker
