#include "broker/handlers/config_alteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "broker/handlers/broker_configs.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/proposing.h"
#include "broker/handlers/topic_creation.h"
#include "broker/handlers/topic_lookup.h"
#include "broker/handlers/topic_rules.h"

namespace varve::broker {
namespace {

using protocol::ErrorCode;
using Problem = std::optional<ConfigProblem>;

// Of a change that others overtake: as many may meet at one topic, since of those that meet one is done each time.
constexpr int kAttemptsMax = 20;

Problem invalid_request(std::string message) {
  return ConfigProblem{ErrorCode::kInvalidRequest, std::move(message)};
}
Problem invalid_config(std::string message) {
  return ConfigProblem{ErrorCode::kInvalidConfig, std::move(message)};
}

bool is(const ConfigEdit& edit, ConfigOperation operation) {
  return edit.operation == static_cast<int8_t>(operation);
}

// As Java's String.split(","): trailing empty items go, but for the one of an empty text.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> items;
  for (;;) {
    size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  while (items.size() > 1 && items.back().empty()) items.pop_back();
  return items;
}

std::string list_after(const ConfigEdit& edit, const std::string& present) {
  std::vector<std::string> items;
  if (!present.empty()) items = split(present);
  for (std::string& item : split(edit.value.value_or(""))) {
    auto found = std::ranges::find(items, item);
    if (is(edit, ConfigOperation::kSubtract)) {
      if (found != items.end()) items.erase(found);
    } else if (found == items.end()) {
      items.push_back(std::move(item));
    }
  }
  return fmt::format("{}", fmt::join(items, ","));
}

Problem edit_topic_config(TopicConfigs& configs, const ConfigEdit& edit) {
  if (is(edit, ConfigOperation::kDelete)) {
    configs.erase(edit.name);
    return std::nullopt;
  }
  if (is(edit, ConfigOperation::kSet)) {
    configs[edit.name] = edit.value.value_or("");
    return std::nullopt;
  }
  const TopicConfigRow* row = find_topic_config(edit.name);
  if (row == nullptr || row->type != ConfigType::kList) {
    return invalid_config(fmt::format("{} is no list, to which something could be added", edit.name));
  }
  auto set = configs.find(edit.name);
  configs[edit.name] = list_after(edit, set == configs.end() ? std::string(row->default_text) : set->second);
  return std::nullopt;
}

// What is wrong with the lines of a resource, whatever it is.
Problem lines_problem(const ResourceEdits& resource) {
  std::set<std::string_view> names;
  for (const ConfigEdit& edit : resource.edits) {
    if (!names.insert(edit.name).second) {
      return invalid_request(fmt::format("the request names {} more than once", edit.name));
    }
  }
  for (const ConfigEdit& edit : resource.edits) {
    if (!edit.value && !is(edit, ConfigOperation::kDelete)) {
      return invalid_request(fmt::format("{} has no value", edit.name));
    }
  }
  return std::nullopt;
}

Problem broker_problem(const Services& services, const ResourceEdits& resource) {
  if (!resource.name.empty()) {
    if (auto problem = broker_name_problem(services.settings, resource.name)) return problem;
  }
  if (resource.edits.empty()) return std::nullopt;
  return invalid_request(
      fmt::format("{} cannot be changed while the broker runs: set it and start the broker again "
                  "(docs/configuration.md)",
                  resource.edits.front().name));
}

Problem logger_problem(const Services& services, const ResourceEdits& resource) {
  if (auto problem = broker_name_problem(services.settings, resource.name)) return problem;
  for (const ConfigEdit& edit : resource.edits) {
    if (is(edit, ConfigOperation::kAppend) || is(edit, ConfigOperation::kSubtract)) {
      return invalid_request("a level of a log is no list");
    }
    if (!is(edit, ConfigOperation::kSet) && !is(edit, ConfigOperation::kDelete)) {
      return invalid_request(fmt::format("there is no operation {}", edit.operation));
    }
    if (edit.name != kRootLogger) {
      return invalid_config(fmt::format("there is no logger '{}', only '{}'", edit.name, kRootLogger));
    }
    if (is(edit, ConfigOperation::kDelete)) return invalid_request("the root logger always has a level");
    if (!log_level_of(*edit.value)) {
      return invalid_config(
          fmt::format("'{}' is no level: DEBUG, ERROR, FATAL, INFO, TRACE or WARN", *edit.value));
    }
  }
  return std::nullopt;
}

Problem metrics_problem(const ResourceEdits& resource) {
  if (resource.name.empty()) return invalid_request("a subscription to metrics needs a name");
  if (resource.edits.empty()) return std::nullopt;
  return invalid_request(fmt::format("{}: this version takes no subscriptions to clients' metrics",
                                     resource.edits.front().name));
}

Problem group_problem(const ResourceEdits& resource) {
  if (resource.name.empty()) return invalid_request("a group needs a name");
  for (const ConfigEdit& edit : resource.edits) {
    auto known = group_configs();
    if (std::ranges::find(known, edit.name, &DescribedConfig::name) == known.end()) {
      return invalid_config(fmt::format("{} is not a config of groups", edit.name));
    }
    return invalid_config(fmt::format(
        "{} cannot be kept: it is for a group protocol that this version does not serve", edit.name));
  }
  return std::nullopt;
}

// What the topic's configs will be.
struct TopicAlteration {
  Uuid topic;
  std::string name;
  uint64_t version = 0;  // of the configs that it was made from
  TopicConfigs configs;
  std::map<std::string, std::optional<std::string>> changes;
};

Result<TopicAlteration, ConfigProblem> topic_alteration(const SyncedImage& synced,
                                                        const ResourceEdits& resource, bool replaces_all) {
  auto refuse = [](ErrorCode code, std::string message) {
    return std::unexpected(ConfigProblem{code, std::move(message)});
  };
  if (resource.name.empty()) return refuse(ErrorCode::kInvalidRequest, "topics have no common configs");
  if (auto problem = topic_name_problem(resource.name)) {
    return refuse(ErrorCode::kInvalidTopicException, std::move(*problem));
  }
  // Kafka looks at the configs before it looks for the topic.
  const metadata::TopicView* topic = synced.image->find_topic(resource.name);
  static const TopicConfigs kNone;
  const TopicConfigs& present = topic != nullptr ? topic->configs : kNone;
  auto edited = edited_topic_configs(present, resource.edits, replaces_all);
  if (!edited) return pass_error(edited);
  if (!synced.is_certain) {
    return refuse(kCannotTellAdmin, "this broker did not hear of the metadata log in time");
  }
  if (topic == nullptr) {
    return refuse(ErrorCode::kUnknownTopicOrPartition, fmt::format("there is no topic '{}'", resource.name));
  }
  TopicAlteration alteration{topic->id, topic->name, topic->configs_version, std::move(*edited), {}};
  for (const auto& [name, value] : alteration.configs) {
    auto before = present.find(name);
    if (before == present.end() || before->second != value) alteration.changes[name] = value;
  }
  for (const auto& [name, value] : present) {
    if (!alteration.configs.contains(name)) alteration.changes[name] = std::nullopt;
  }
  return alteration;
}

Problem problem_of(const ProposedOutcome& outcome) {
  if (!outcome) return ConfigProblem{error_of(outcome.error().code), outcome.error().message};
  if (outcome->verdict == metadata::CommandVerdict::kDone) return std::nullopt;
  if (outcome->verdict == metadata::CommandVerdict::kUnknownTopic) {
    return ConfigProblem{ErrorCode::kUnknownTopicOrPartition, "the topic was deleted meanwhile"};
  }
  if (outcome->verdict == metadata::CommandVerdict::kStaleConfigs) {
    // Retriable for clients, and one that does not leave open whether something was changed.
    return ConfigProblem{ErrorCode::kNotController, "others change the topic's configs all the time"};
  }
  return ConfigProblem{ErrorCode::kUnknownServerError, "the metadata log refused the change"};
}

// One request on its way through the checks, in Kafka's order.
class Alteration {
 public:
  Alteration(Services& services, const RequestContext& context, const AlterationRequest& request)
      : services_(services), context_(context), request_(request), problems_(request.resources.size()) {}

  // Before the state is looked at. Levels of logs change here. True: topics are left to be looked at.
  bool check();
  // What is to be proposed for the topics that are left, to be taken with its outcomes. No topic is left then.
  std::vector<metadata::Command> topic_commands(const SyncedImage& synced);
  // True: topics are left, to be looked at again, since their configs were changed meanwhile.
  bool take(const std::vector<ProposedOutcome>& outcomes);
  std::vector<Problem> take_problems() { return std::move(problems_); }

 private:
  Problem problem_before_state(const ResourceEdits& resource, ConfigResource type) const;
  void set_levels(const ResourceEdits& resource);

  Services& services_;
  const RequestContext& context_;
  const AlterationRequest& request_;
  std::vector<Problem> problems_;
  std::vector<size_t> topics_;  // resources that are left
  std::vector<TopicAlteration> proposed_;
  std::vector<size_t> places_;  // of proposed_, among the resources
};

Problem Alteration::problem_before_state(const ResourceEdits& resource, ConfigResource type) const {
  if (!services_.settings.allow_admin_apis) {
    return ConfigProblem{ErrorCode::kClusterAuthorizationFailed, std::string(kAdminApisOff)};
  }
  ErrorCode denial = denial_on(services_, context_, Operation::kAlterConfigs, type, resource.name);
  if (denial != ErrorCode::kNone) return ConfigProblem{denial, "the client may not change its configs"};
  switch (type) {
    case ConfigResource::kTopic:
      return std::nullopt;
    case ConfigResource::kBroker:
      return broker_problem(services_, resource);
    case ConfigResource::kBrokerLogger:
      return logger_problem(services_, resource);
    case ConfigResource::kClientMetrics:
      return metrics_problem(resource);
    case ConfigResource::kGroup:
      return group_problem(resource);
  }
  return std::nullopt;
}

void Alteration::set_levels(const ResourceEdits& resource) {
  for (const ConfigEdit& edit : resource.edits) {
    services_.logger.set_level(*log_level_of(*edit.value));
    services_.logger.warn("level of the log changed", {{"level", *edit.value}});
  }
}

bool Alteration::check() {
  std::map<std::pair<int8_t, std::string_view>, size_t> uses;
  for (const ResourceEdits& resource : request_.resources) ++uses[{resource.type, resource.name}];
  bool has_unknown_operation = false;
  std::vector<size_t> left;
  for (size_t i = 0; i < request_.resources.size(); ++i) {
    const ResourceEdits& resource = request_.resources[i];
    std::optional<ConfigResource> type = config_resource_of(resource.type);
    bool is_known = type && !(request_.replaces_all && type == ConfigResource::kBrokerLogger);
    if (uses[{resource.type, resource.name}] > 1) {
      problems_[i] = invalid_request("the request names this resource more than once");
    } else if (auto problem = lines_problem(resource)) {
      problems_[i] = std::move(problem);
    } else if (!is_known) {
      problems_[i] = invalid_request(fmt::format("there is no resource of type {}", resource.type));
    } else {
      left.push_back(i);
      bool is_here = type == ConfigResource::kBroker || type == ConfigResource::kBrokerLogger;
      has_unknown_operation |= !is_here && std::ranges::any_of(resource.edits, [](const ConfigEdit& edit) {
        return edit.operation < 0 || edit.operation > static_cast<int8_t>(ConfigOperation::kSubtract);
      });
    }
  }
  for (size_t i : left) {
    const ResourceEdits& resource = request_.resources[i];
    ConfigResource type = *config_resource_of(resource.type);
    problems_[i] = problem_before_state(resource, type);
    if (problems_[i]) continue;
    if (type == ConfigResource::kBrokerLogger && !request_.validate_only) set_levels(resource);
    if (type == ConfigResource::kBroker || type == ConfigResource::kBrokerLogger) continue;
    if (has_unknown_operation) {
      // As Kafka, whose controller cannot read such a request.
      problems_[i] = ConfigProblem{ErrorCode::kUnknownServerError, ""};
    } else if (type == ConfigResource::kTopic) {
      topics_.push_back(i);
    }
  }
  return !topics_.empty();
}

std::vector<metadata::Command> Alteration::topic_commands(const SyncedImage& synced) {
  std::vector<metadata::Command> commands;
  proposed_.clear();
  places_.clear();
  for (size_t i : std::exchange(topics_, {})) {
    problems_[i].reset();
    auto alteration = topic_alteration(synced, request_.resources[i], request_.replaces_all);
    if (!alteration) {
      problems_[i] = std::move(alteration.error());
      continue;
    }
    if (request_.validate_only || alteration->changes.empty()) continue;
    commands.emplace_back(
        metadata::AlterTopicConfigs{alteration->topic, alteration->version, alteration->changes});
    proposed_.push_back(std::move(*alteration));
    places_.push_back(i);
  }
  return commands;
}

bool Alteration::take(const std::vector<ProposedOutcome>& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    problems_[places_[i]] = problem_of(outcomes[i]);
    if (outcomes[i] && outcomes[i]->verdict == metadata::CommandVerdict::kStaleConfigs) {
      topics_.push_back(places_[i]);
    }
    if (problems_[places_[i]]) continue;
    const TopicAlteration& done = proposed_[i];
    services_.logger.info("configs of a topic changed",
                          {{"topic", done.name}, {"count", done.changes.size()}});
    warn_of_configs_without_effect(services_, done.name, done.configs);
  }
  return !topics_.empty();
}

}  // namespace

Result<TopicConfigs, ConfigProblem> edited_topic_configs(const TopicConfigs& set,
                                                         const std::vector<ConfigEdit>& edits,
                                                         bool replaces_all) {
  TopicConfigs configs = replaces_all ? TopicConfigs() : set;
  for (const ConfigEdit& edit : edits) {
    if (auto problem = edit_topic_config(configs, edit)) return std::unexpected(std::move(*problem));
  }
  auto read = read_topic_configs(configs);
  if (!read) return std::unexpected(ConfigProblem{ErrorCode::kInvalidConfig, std::move(read.error())});
  return std::move(*read);
}

runtime::Task<std::vector<Problem>> alter_configs(Services& services, RequestContext context,
                                                  AlterationRequest request) {
  Alteration alteration(services, context, request);
  if (!alteration.check()) co_return alteration.take_problems();
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    SyncedImage synced = co_await synced_image(services, context.deadline);
    std::vector<metadata::Command> commands = alteration.topic_commands(synced);
    if (commands.empty()) break;
    std::vector<ProposedOutcome> outcomes =
        co_await propose_all(services.runtime, services.metadata, std::move(commands), context.deadline);
    if (!alteration.take(outcomes)) break;
  }
  co_return alteration.take_problems();
}

}  // namespace varve::broker
