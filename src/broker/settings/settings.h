// Everything an operator can set about a broker: the typed values, and how they are read from the environment and
// a file. The table of names, types, defaults and bounds is in setting_table.cc; docs/configuration.md is printed
// from it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "runtime/network.h"

namespace varve::broker {

// Where clients of one kind connect.
struct ListenerSettings {
  std::string name;
  runtime::Address address;
  // What those who came through it are told to connect to. Port 0: the one listened on.
  runtime::Address advertised;

  bool operator==(const ListenerSettings&) const = default;
};

// Where objects lie in S3; no bucket: in a local folder. broker/s3_bucket.h makes options of a store from it.
struct S3Settings {
  std::string bucket;
  std::string region;
  std::string endpoint;            // "": AWS's own of the region
  std::optional<bool> path_style;  // nullopt: with an endpoint, yes
  std::string access_key;
  std::string secret_key;
  std::string session_token;
  // What AWS's own tools read, used where there is no access_key.
  std::string aws_access_key;
  std::string aws_secret_key;
  std::string aws_session_token;
  std::string kms_key;
};

// A plain value; a broker holds its own copy, fixed at start. default_settings() gives the table's defaults.
struct Settings {
  runtime::Address kafka_address;
  runtime::Address http_address;
  // What Metadata tells clients to connect to. Port 0: the one listened on.
  runtime::Address advertised;
  // Named ones; `kafka_address` and `advertised` are not used then.
  std::vector<ListenerSettings> listeners;
  // As they were given; load_settings() has put them into `listeners`.
  std::map<std::string, runtime::Address> advertised_listeners;
  BrokerId broker_id;
  std::string rack;
  std::string data_folder;
  // First part of every object's key (KAFSCALE_S3_NAMESPACE).
  std::string key_namespace;
  S3Settings s3;
  uint64_t snapshot_after_bytes = 0;  // of metadata log
  size_t io_threads = 0;              // 0: one a processor

  bool auto_create_topics = false;
  int32_t auto_create_partitions = 0;
  bool allow_admin_apis = false;

  // Of consumer groups.
  Duration group_session_timeout_min{};
  Duration group_session_timeout_max{};
  Duration group_initial_rebalance_delay{};
  size_t group_members_max = 0;
  size_t offset_metadata_max = 0;  // characters
  // nullopt: as the cluster has it.
  std::optional<Duration> offsets_retention;

  LogLevel log_level = LogLevel::kWarn;
  LogFormat log_format = LogFormat::kText;
  bool trace_kafka = false;
  Duration startup_timeout{};
  Duration shutdown_timeout{};
  Duration throughput_window{};

  // False: batches without a producer id are acknowledged from the buffer, flushed by the two below.
  bool produce_sync_flush = true;
  uint64_t segment_bytes = 0;
  Duration flush_interval{};
  // nullopt: as fits the object store (5 ms on a local folder, 250 ms on S3).
  std::optional<Duration> append_commit_interval;

  Limits limits;

  // The texts of what was set, by name in the environment, secrets left out; what DescribeConfigs tells.
  std::map<std::string, std::string, std::less<>> given;

  // The named ones, or one named PLAINTEXT. Never empty.
  std::vector<ListenerSettings> all_listeners() const;
};

struct SettingsError {
  std::string name;   // of the setting, as it was spelled
  std::string value;  // "" for secrets
  std::string problem;

  // One line: name, value, what is allowed.
  std::string to_string() const;
};

struct LoadedSettings {
  Settings settings;
  // One sentence each, to be logged.
  std::vector<std::string> warnings;
  // Name and value of everything that was set, secrets left out; for the log at start.
  std::map<std::string, std::string> given;
};

using Environment = std::map<std::string, std::string>;
// Of this process.
Environment process_environment();

Settings default_settings();

// `environment` may hold anything; only known names are read. Unknown KAFSCALE_*, DISKLESS_* and VARVE_* ones are warned
// about, KAFKA_* ones if nearly a setting's. An empty value counts as not set. `file_text`: lines of name=value, either
// name, '#' starts a comment line; an unknown name or one given twice is an error. The environment wins over the file.
Result<LoadedSettings, SettingsError> load_settings(const Environment& environment,
                                                    const std::optional<std::string>& file_text);

// docs/configuration.md, from the table.
std::string configuration_page();

}  // namespace varve::broker
