#include "broker/settings/settings.h"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <utility>

#include "broker/settings/listeners.h"
#include "broker/settings/setting_readers.h"
#include "broker/settings/setting_table.h"

namespace varve::broker {
namespace {

using setting_readers::trim;

// A name that differs in more letters was not meant.
constexpr size_t kMisspeltLettersMax = 2;

const SettingRow* find_row(std::string_view name) {
  for (const SettingRow& row : setting_table()) {
    if (row.env == name || (!row.key.empty() && row.key == name)) return &row;
  }
  return nullptr;
}

// How many letters must be put in, left out or changed to make one of the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

// The setting that the name nearly is; "" if there is none.
std::string_view nearly_named(std::string_view name) {
  for (const SettingRow& row : setting_table()) {
    if (edit_distance(name, row.env) <= kMisspeltLettersMax) return row.env;
  }
  return {};
}

struct Given {
  std::string spelled;
  std::string value;
};
// By SettingRow::env.
using GivenValues = std::map<std::string_view, Given>;

Result<void, SettingsError> read_file(std::string_view text, GivenValues& given) {
  size_t number = 0;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++number;
    if (line.empty() || line[0] == '#') continue;
    size_t equals = line.find('=');
    std::string name(trim(line.substr(0, equals)));
    if (equals == std::string_view::npos) {
      return std::unexpected(SettingsError{name, "", fmt::format("line {} of the file has no '='", number)});
    }
    std::string value(trim(line.substr(equals + 1)));
    const SettingRow* row = find_row(name);
    if (row == nullptr) {
      return std::unexpected(SettingsError{
          name, value,
          fmt::format("line {} of the file: no such setting (docs/configuration.md lists them)", number)});
    }
    if (!given.emplace(row->env, Given{name, value}).second) {
      return std::unexpected(
          SettingsError{name, "", fmt::format("line {} of the file sets it a second time", number)});
    }
  }
  return {};
}

std::string_view value_of(const Environment& environment, const std::string& name) {
  auto found = environment.find(name);
  return found == environment.end() ? std::string_view{} : trim(found->second);
}

// The number at the end of a StatefulSet pod's name.
std::optional<int32_t> pod_ordinal(std::string_view pod_name) {
  size_t dash = pod_name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::optional<int64_t> number = setting_readers::parse_number<int64_t>(pod_name.substr(dash + 1));
  if (!number || *number < 0 || *number > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*number);
}

// What is derived from several settings, once all are read.
void derive(const Environment& environment, const GivenValues& given, Settings& settings) {
  std::string_view pod_name = value_of(environment, "POD_NAME");
  if (!given.contains("KAFSCALE_BROKER_ID")) settings.broker_id = BrokerId(pod_ordinal(pod_name).value_or(0));

  if (settings.advertised.host.empty()) {
    std::string_view pod_namespace = value_of(environment, "POD_NAMESPACE");
    auto service = given.find("KAFSCALE_BROKER_SERVICE");
    if (settings.listeners.empty() && names_a_host(settings.kafka_address.host)) {
      settings.advertised.host = settings.kafka_address.host;
    } else if (service != given.end() && !pod_name.empty() && !pod_namespace.empty()) {
      settings.advertised.host =
          fmt::format("{}.{}.{}.svc.cluster.local", pod_name, service->second.value, pod_namespace);
    } else {
      settings.advertised.host = "localhost";
    }
  }
}

// Named listeners say all about where clients connect.
std::optional<SettingsError> resolve_listeners(const GivenValues& given, Settings& settings) {
  if (settings.listeners.empty()) {
    auto advertised = given.find("KAFKA_ADVERTISED_LISTENERS");
    if (advertised == given.end()) return std::nullopt;
    return SettingsError{advertised->second.spelled, advertised->second.value, "KAFKA_LISTENERS is not set"};
  }
  for (std::string_view name : {"KAFSCALE_BROKER_ADDR", "KAFSCALE_BROKER_HOST", "KAFSCALE_BROKER_PORT"}) {
    auto found = given.find(name);
    if (found != given.end()) {
      return SettingsError{found->second.spelled, found->second.value,
                           "KAFKA_LISTENERS is set too; set one of them"};
    }
  }
  return advertise(settings.listeners, settings.advertised_listeners, settings.advertised.host);
}

std::optional<SettingsError> contradiction(const Settings& settings) {
  if (settings.limits.request_memory_bytes_max < settings.limits.frame_bytes_max) {
    return SettingsError{
        "KAFKA_QUEUED_MAX_REQUEST_BYTES", std::to_string(settings.limits.request_memory_bytes_max),
        "smaller than KAFKA_SOCKET_REQUEST_MAX_BYTES, so that the largest request would wait for "
        "ever"};
  }
  if (settings.s3.bucket.empty()) {
    // Whoever set one of these wants a bucket, and would find his records on a disk. AWS's names may be there for others.
    for (auto [name, value] : {std::pair{"KAFSCALE_S3_ENDPOINT", &settings.s3.endpoint},
                               {"KAFSCALE_S3_ACCESS_KEY", &settings.s3.access_key},
                               {"KAFSCALE_S3_SECRET_KEY", &settings.s3.secret_key},
                               {"KAFSCALE_S3_SESSION_TOKEN", &settings.s3.session_token},
                               {"KAFSCALE_S3_KMS_ARN", &settings.s3.kms_key}}) {
      if (!value->empty()) return SettingsError{name, "", "it is set, but KAFSCALE_S3_BUCKET is not"};
    }
  }
  if (settings.limits.batch_bytes_max > settings.limits.frame_bytes_max) {
    return SettingsError{"KAFKA_MESSAGE_MAX_BYTES", std::to_string(settings.limits.batch_bytes_max),
                         "larger than KAFKA_SOCKET_REQUEST_MAX_BYTES"};
  }
  if (settings.group_session_timeout_min > settings.group_session_timeout_max) {
    auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(settings.group_session_timeout_min);
    return SettingsError{"KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", std::to_string(milliseconds.count()),
                         "longer than KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS"};
  }
  for (const ListenerSettings& listener : settings.all_listeners()) {
    if (listener.address != settings.http_address || listener.address.port == 0) continue;
    return SettingsError{
        "KAFSCALE_METRICS_ADDR", settings.http_address.to_string(),
        fmt::format("the same address as {}",
                    settings.listeners.empty() ? "KAFSCALE_BROKER_ADDR" : "one of KAFKA_LISTENERS")};
  }
  return std::nullopt;
}

void add_warnings(const Environment& environment, const GivenValues& given, LoadedSettings& loaded) {
  for (const auto& [name, value] : environment) {
    // Names with KAFKA_ are those of a Kafka installation too (KAFKA_OPTS, KAFKA_HEAP_OPTS), so only what is nearly one
    // of ours is warned about.
    bool is_ours =
        name.starts_with("KAFSCALE_") || name.starts_with("DISKLESS_") || name.starts_with("VARVE_");
    if (!is_ours && !name.starts_with("KAFKA_")) continue;
    if (find_row(name) != nullptr || belongs_to_another_program(name)) continue;
    std::string_view meant = nearly_named(name);
    if (meant.empty() && !is_ours) continue;
    loaded.warnings.push_back(fmt::format("{} is not a setting of the broker and has no effect{}", name,
                                          meant.empty() ? "" : fmt::format("; {} is one", meant)));
  }
  auto env = given.find("KAFSCALE_ENV");
  if (env == given.end() || env->second.value != "prod") return;
  for (std::string_view name : {"KAFSCALE_BROKER_ADDR", "KAFSCALE_METRICS_ADDR", "KAFSCALE_DATA_DIR"}) {
    if (given.contains(name)) continue;
    if (name == "KAFSCALE_BROKER_ADDR" && given.contains("KAFKA_LISTENERS")) continue;
    loaded.warnings.push_back(fmt::format("KAFSCALE_ENV is prod, but {} is not set: {} is used", name,
                                          find_row(name)->default_text));
  }
}

}  // namespace

std::string SettingsError::to_string() const {
  if (value.empty()) return fmt::format("setting {}: {}", name, problem);
  return fmt::format("setting {}={}: {}", name, value, problem);
}

std::vector<ListenerSettings> Settings::all_listeners() const {
  if (!listeners.empty()) return listeners;
  return {{"PLAINTEXT", kafka_address, advertised}};
}

Settings default_settings() {
  Settings settings;
  for (const SettingRow& row : setting_table()) {
    if (row.default_text.empty()) continue;
    std::optional<std::string> problem = row.read(row.default_text, settings);
    CHECK(!problem, "default of {}: {}", row.env, *problem);
  }
  derive({}, {}, settings);
  return settings;
}

Result<LoadedSettings, SettingsError> load_settings(const Environment& environment,
                                                    const std::optional<std::string>& file_text) {
  GivenValues given;
  if (file_text) {
    Result<void, SettingsError> read = read_file(*file_text, given);
    if (!read) return pass_error(read);
  }
  for (const SettingRow& row : setting_table()) {
    std::string_view value = value_of(environment, std::string(row.env));
    if (!value.empty()) given[row.env] = Given{std::string(row.env), std::string(value)};
  }
  // The newer name wins; the older one is then not even read.
  if (given.contains("KAFSCALE_CACHE_BYTES")) given.erase("KAFSCALE_CACHE_SIZE");

  LoadedSettings loaded;
  loaded.settings = default_settings();
  loaded.settings.advertised = {};
  for (const auto& [env, entry] : given) {
    if (entry.value.empty()) continue;
    const SettingRow& row = *find_row(env);
    std::optional<std::string> problem = row.read(entry.value, loaded.settings);
    if (problem) {
      if (row.group != SettingGroup::kLater) {
        *problem += fmt::format("; allowed: {}", row.allowed.empty() ? std::string(row.type) : row.allowed);
      }
      return std::unexpected(SettingsError{entry.spelled, row.is_secret ? "" : entry.value, *problem});
    }
    if (!row.is_secret) loaded.settings.given[std::string(env)] = entry.value;
    loaded.given[entry.spelled] = row.is_secret ? std::string(kRedactedText) : entry.value;
  }
  derive(environment, given, loaded.settings);
  if (std::optional<SettingsError> error = resolve_listeners(given, loaded.settings)) {
    return std::unexpected(*error);
  }
  if (std::optional<SettingsError> error = contradiction(loaded.settings)) return std::unexpected(*error);
  add_warnings(environment, given, loaded);
  return loaded;
}

}  // namespace varve::broker
