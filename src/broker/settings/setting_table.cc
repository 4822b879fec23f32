#include "broker/settings/setting_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/settings/listeners.h"
#include "broker/settings/setting_readers.h"

namespace varve::broker {
namespace {

using setting_readers::boolean;
using setting_readers::duration;
using setting_readers::integer;
using setting_readers::later;
using setting_readers::Reader;

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr uint16_t kKafkaPort = 9092;
constexpr uint16_t kHttpPort = 9093;

std::string between(int64_t min, int64_t max) { return fmt::format("{} to {}", min, max); }

Reader address(runtime::Address Settings::* member, uint16_t default_port) {
  return [=](std::string_view text, Settings& settings) -> std::optional<std::string> {
    std::optional<runtime::Address> value = parse_address(text, default_port);
    if (!value) return "not an address";
    settings.*member = std::move(*value);
    return std::nullopt;
  };
}

std::optional<std::string> read_log_level(std::string_view text, Settings& settings) {
  std::optional<LogLevel> level = parse_log_level(text);
  if (!level) return "no such level";
  settings.log_level = *level;
  return std::nullopt;
}

std::optional<std::string> read_log_format(std::string_view text, Settings& settings) {
  if (text != "text" && text != "json") return "no such format";
  settings.log_format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return std::nullopt;
}

// A namespace becomes the first part of keys, and KafScale's tools cut keys at '/'.
std::optional<std::string> read_namespace(std::string_view text, Settings& settings) {
  auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (text.size() > 200 || !std::ranges::all_of(text, is_allowed) || text == "." || text == "..") {
    return "cannot be the first part of a key";
  }
  settings.key_namespace = std::string(text);
  return std::nullopt;
}

std::optional<std::string> ignore(std::string_view, Settings&) { return std::nullopt; }

void add_network(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kNetwork;
  rows.push_back({group, "KAFSCALE_BROKER_ADDR", "", "address", "127.0.0.1:9092",
                  "host:port, :port or [ipv6]:port",
                  "Where Kafka clients connect. `:9092` listens on every interface.",
                  address(&Settings::kafka_address, kKafkaPort)});
  rows.push_back(
      {group, "KAFSCALE_METRICS_ADDR", "", "address", "127.0.0.1:9093", "host:port, :port or [ipv6]:port",
       "Where /metrics, /healthz, /readyz and, for `varve inspect log`, /log are served over HTTP. Whoever "
       "reaches it reads names of topics, but no records.",
       address(&Settings::http_address, kHttpPort)});
  rows.push_back(
      {group, "KAFSCALE_BROKER_HOST", "", "text", "", "",
       "Host that clients are told to connect to. Not set: the host of KAFSCALE_BROKER_ADDR if it names "
       "one, else `<POD_NAME>.<KAFSCALE_BROKER_SERVICE>.<POD_NAMESPACE>.svc.cluster.local`, else "
       "`localhost`.",
       [](std::string_view text, Settings& settings) -> std::optional<std::string> {
         settings.advertised.host = std::string(text);
         return std::nullopt;
       }});
  rows.push_back({group, "KAFSCALE_BROKER_PORT", "", "number", "", between(1, 65535),
                  "Port that clients are told to connect to. Not set: the one listened on.",
                  integer(1, 65535, [](Settings& settings, int64_t port) {
                    settings.advertised.port = static_cast<uint16_t>(port);
                  })});
  rows.push_back({group, "KAFSCALE_BROKER_SERVICE", "", "text", "", "",
                  "Name of the headless Kubernetes service; used with POD_NAME and POD_NAMESPACE.", ignore});
  rows.push_back(
      {group, "KAFKA_LISTENERS", "listeners", "list", "", "NAME://host:port, comma-separated",
       "Named listeners, in place of KAFSCALE_BROKER_ADDR: a client is told the addresses of the one it came "
       "through. `NAME://:9092` listens on every interface.",
       [](std::string_view text, Settings& settings) -> std::optional<std::string> {
         auto parsed = parse_named_addresses(text);
         if (!parsed) return parsed.error();
         settings.listeners.clear();
         for (auto& [name, address] : *parsed) settings.listeners.push_back({name, address, {}});
         return std::nullopt;
       }});
  rows.push_back(
      {group, "KAFKA_ADVERTISED_LISTENERS", "advertised.listeners", "list", "",
       "NAME://host:port, comma-separated",
       "What clients of a named listener are told to connect to. Not set for one: the host it listens "
       "on, or what KAFSCALE_BROKER_HOST would be.",
       [](std::string_view text, Settings& settings) -> std::optional<std::string> {
         auto parsed = parse_named_addresses(text);
         if (!parsed) return parsed.error();
         settings.advertised_listeners = {parsed->begin(), parsed->end()};
         return std::nullopt;
       }});
  rows.push_back({group, "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "listener.security.protocol.map", "list", "",
                  "NAME:PLAINTEXT, comma-separated", "Security protocol of each named listener.",
                  [](std::string_view text, Settings&) { return protocol_map_problem(text); }});
  rows.push_back({group, "KAFSCALE_BROKER_ID", "", "number", "", between(0, kInt32Max),
                  "Node id of this broker. Not set: the number at the end of POD_NAME, else 0.",
                  integer(0, kInt32Max, [](Settings& settings, int64_t id) {
                    settings.broker_id = BrokerId(static_cast<int32_t>(id));
                  })});
  rows.push_back(
      {group, "KAFKA_BROKER_RACK", "broker.rack", "text", "", "",
       "Rack, or availability zone, of this broker. Clients that name theirs are led to brokers there.",
       setting_readers::text(&Settings::rack)});
}

Reader text(std::string S3Settings::* member) {
  return [member](std::string_view text, Settings& settings) -> std::optional<std::string> {
    settings.s3.*member = std::string(text);
    return std::nullopt;
  };
}

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, with the capitals and underscores of old
// buckets and other stores.
std::optional<std::string> read_bucket(std::string_view text, Settings& settings) {
  auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  if (text.size() < 3 || text.size() > 255 || !std::ranges::all_of(text, is_allowed))
    return "no name of a bucket";
  settings.s3.bucket = std::string(text);
  return std::nullopt;
}

void add_s3(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kStorage;
  rows.push_back({group, "KAFSCALE_S3_BUCKET", "", "text", "", "3 to 255 of a-z A-Z 0-9 . _ -",
                  "Bucket for records, of S3 or of a store that speaks its protocol. Not set: they lie in "
                  "KAFSCALE_DATA_DIR.",
                  read_bucket});
  rows.push_back({group, "KAFSCALE_S3_REGION", "", "text", "us-east-1", "", "Region of the bucket.",
                  text(&S3Settings::region)});
  rows.push_back({group, "KAFSCALE_S3_ENDPOINT", "", "url", "", "https://host:port or http://host:port",
                  "Where the store is. Not set: AWS's endpoint of the region.", text(&S3Settings::endpoint)});
  rows.push_back(
      {group, "KAFSCALE_S3_PATH_STYLE", "", "true/false", "", "",
       "Names the bucket in the path of a request, not in the name of the host. Not set: true where "
       "KAFSCALE_S3_ENDPOINT is set, else false.",
       [](std::string_view text, Settings& settings) -> std::optional<std::string> {
         settings.s3.path_style = setting_readers::parse_bool(text);
         if (!settings.s3.path_style) return "neither true nor false";
         return std::nullopt;
       }});
  rows.push_back({group, "KAFSCALE_S3_ACCESS_KEY", "", "text", "", "",
                  "Access key. Not set: AWS_ACCESS_KEY_ID, with its two companions.",
                  text(&S3Settings::access_key), true});
  rows.push_back({group, "KAFSCALE_S3_SECRET_KEY", "", "text", "", "", "The access key's secret.",
                  text(&S3Settings::secret_key), true});
  rows.push_back({group, "KAFSCALE_S3_SESSION_TOKEN", "", "text", "", "",
                  "Session token, of keys that are temporary.", text(&S3Settings::session_token), true});
  rows.push_back({group, "AWS_ACCESS_KEY_ID", "", "text", "", "",
                  "Access key, as AWS's tools name it; KAFSCALE_S3_ACCESS_KEY wins.",
                  text(&S3Settings::aws_access_key), true});
  rows.push_back({group, "AWS_SECRET_ACCESS_KEY", "", "text", "", "", "Its secret.",
                  text(&S3Settings::aws_secret_key), true});
  rows.push_back({group, "AWS_SESSION_TOKEN", "", "text", "", "", "Its session token.",
                  text(&S3Settings::aws_session_token), true});
  rows.push_back({group, "KAFSCALE_S3_KMS_ARN", "", "text", "", "",
                  "Key of AWS KMS that objects are encrypted with. Not set: as the bucket has it.",
                  text(&S3Settings::kms_key)});
}

void add_storage(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kStorage;
  rows.push_back(
      {group, "KAFSCALE_DATA_DIR", "", "path", "./varve-data", "",
       "Folder of the local object store (`objects`) and the metadata log (`metadata`). Made if absent.",
       setting_readers::text(&Settings::data_folder)});
  rows.push_back({group, "KAFSCALE_S3_NAMESPACE", "", "text", "default", "up to 200 of a-z A-Z 0-9 . _ -",
                  "First part of every object's key.", read_namespace});
  add_s3(rows);
  int64_t cache_max = int64_t{1} << 40;
  rows.push_back({group, "KAFSCALE_CACHE_BYTES", "", "bytes", "1073741824", between(1 << 20, cache_max),
                  "Memory for records read lately. It is taken as it is needed.",
                  integer(1 << 20, cache_max, &Limits::cache_bytes_max)});
  rows.push_back({group, "KAFSCALE_CACHE_SIZE", "", "bytes", "", between(1 << 20, cache_max),
                  "Older name of KAFSCALE_CACHE_BYTES, which wins.",
                  integer(1 << 20, cache_max, &Limits::cache_bytes_max)});
}

void add_metadata(std::vector<SettingRow>& rows) {
  int64_t bytes_max = int64_t{1} << 40;
  rows.push_back({SettingGroup::kStorage, "KAFKA_METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS",
                  "metadata.log.max.record.bytes.between.snapshots", "bytes", "67108864",
                  between(1024, bytes_max),
                  "A snapshot of the metadata is written after so many bytes of metadata log. A start reads "
                  "the newest one and "
                  "the log behind it; the log before the oldest of three goes.",
                  integer(1024, bytes_max, &Settings::snapshot_after_bytes)});
}

void add_write_path(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kWritePath;
  rows.push_back(
      {group, "DISKLESS_APPEND_COMMIT_INTERVAL_MS", "diskless.append.commit.interval.ms", "ms", "",
       between(0, 60'000),
       "Longest time that a batch waits for others to share its upload. Not set: 5 on a local folder, 250 "
       "on S3. A broker with nothing to do uploads at once.",
       integer(0, 60'000, [](Settings& settings, int64_t value) {
         settings.append_commit_interval = std::chrono::milliseconds(value);
       })});
  rows.push_back({group, "DISKLESS_APPEND_BUFFER_MAX_BYTES", "diskless.append.buffer.max.bytes", "bytes",
                  "4194304", between(64 << 10, 256 << 20), "An upload starts when so much waits.",
                  integer(64 << 10, 256 << 20, &Limits::ingest_buffer_bytes_max)});
  rows.push_back(
      {group, "KAFSCALE_PRODUCE_SYNC_FLUSH", "", "true/false", "true", "",
       "false acknowledges batches without a producer id from memory, before they are stored: what the "
       "two settings below allow to wait is lost in a crash. Idempotent batches always wait.",
       boolean(&Settings::produce_sync_flush)});
  rows.push_back({group, "KAFSCALE_SEGMENT_BYTES", "", "bytes", "4194304", between(64 << 10, 1 << 30),
                  "Without sync flush: an upload starts when so much waits.",
                  integer(64 << 10, 1 << 30, &Settings::segment_bytes)});
  rows.push_back({group, "KAFSCALE_FLUSH_INTERVAL_MS", "", "ms", "500", between(1, 3'600'000),
                  "Without sync flush: longest time that a batch waits for its upload.",
                  duration(1ms, 1, 3'600'000, &Settings::flush_interval)});
}

void add_topics(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kTopics;
  rows.push_back({group, "KAFSCALE_AUTO_CREATE_TOPICS", "auto.create.topics.enable", "true/false", "true", "",
                  "Whether a client that asks for an unknown topic may make it.",
                  boolean(&Settings::auto_create_topics)});
  rows.push_back({group, "KAFSCALE_AUTO_CREATE_PARTITIONS", "num.partitions", "number", "1",
                  between(1, 10'000),
                  "Partitions of topics made without a number, automatically or by -1 in CreateTopics.",
                  integer(1, 10'000, &Settings::auto_create_partitions)});
  rows.push_back({group, "KAFSCALE_ALLOW_ADMIN_APIS", "", "true/false", "true", "",
                  "Whether clients may create, change and delete topics, and delete records.",
                  boolean(&Settings::allow_admin_apis)});
  rows.push_back({group, "KAFKA_MESSAGE_MAX_BYTES", "message.max.bytes", "bytes", "1048588",
                  between(100, 100 << 20),
                  "Largest record batch, header included, of topics without their own max.message.bytes.",
                  integer(100, 100 << 20, &Limits::batch_bytes_max)});
}

void add_groups(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kGroups;
  rows.push_back({group, "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "group.min.session.timeout.ms", "ms", "6000",
                  between(1, kInt32Max), "Shortest session that a member of a consumer group may ask for.",
                  duration(1ms, 1, kInt32Max, &Settings::group_session_timeout_min)});
  rows.push_back({group, "KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS", "group.max.session.timeout.ms", "ms",
                  "1800000", between(1, kInt32Max),
                  "Longest session that a member of a consumer group may ask for.",
                  duration(1ms, 1, kInt32Max, &Settings::group_session_timeout_max)});
  rows.push_back(
      {group, "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "group.initial.rebalance.delay.ms", "ms", "3000",
       between(0, kInt32Max),
       "How long the first member of an empty group waits for others, so that there is one rebalance and not "
       "many.",
       duration(1ms, 0, kInt32Max, &Settings::group_initial_rebalance_delay)});
  rows.push_back({group, "KAFKA_GROUP_MAX_SIZE", "group.max.size", "number", "2147483647",
                  between(1, kInt32Max), "Most members of a consumer group. More than 5000 are never taken.",
                  integer(1, kInt32Max, &Settings::group_members_max)});
  rows.push_back({group, "KAFKA_OFFSET_METADATA_MAX_BYTES", "offset.metadata.max.bytes", "bytes", "4096",
                  between(0, 32'767), "Longest text that a client may store with a committed offset.",
                  integer(0, 32'767, &Settings::offset_metadata_max)});
  rows.push_back(
      {group, "KAFKA_OFFSETS_RETENTION_MINUTES", "offsets.retention.minutes", "minutes", "",
       between(1, kInt32Max),
       "How long the offsets of a group without members are kept. It is one for the cluster: the broker that "
       "was started last sets it. Not set: as it is there, which is 10080 (a week) at first.",
       integer(1, kInt32Max, [](Settings& settings, int64_t value) {
         settings.offsets_retention = std::chrono::minutes(value);
       })});
}

void add_limits(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kLimits;
  rows.push_back({group, "KAFKA_SOCKET_REQUEST_MAX_BYTES", "socket.request.max.bytes", "bytes", "104857600",
                  between(64 << 10, 1 << 30), "Largest request. A larger one closes its connection.",
                  integer(64 << 10, 1 << 30, &Limits::frame_bytes_max)});
  int64_t memory_max = int64_t{1} << 40;
  rows.push_back({group, "KAFKA_QUEUED_MAX_REQUEST_BYTES", "queued.max.request.bytes", "bytes", "536870912",
                  between(1 << 20, memory_max),
                  "Memory for requests that are read or served; when it is taken, connections wait. At least "
                  "socket.request.max.bytes.",
                  integer(1 << 20, memory_max, &Limits::request_memory_bytes_max)});
  rows.push_back({group, "KAFKA_MAX_CONNECTIONS", "max.connections", "number", "10000", between(1, 1'000'000),
                  "Connections of Kafka clients. Further ones are closed at once.",
                  integer(1, 1'000'000, &Limits::connections_max)});
  rows.push_back({group, "KAFKA_MAX_CONNECTIONS_PER_IP", "max.connections.per.ip", "number", "5000",
                  between(1, 1'000'000), "The same, for one address.",
                  integer(1, 1'000'000, &Limits::connections_per_address_max)});
  rows.push_back({group, "KAFKA_CONNECTIONS_MAX_IDLE_MS", "connections.max.idle.ms", "ms", "600000",
                  between(1'000, 86'400'000), "A connection without requests for so long is closed.",
                  integer(1'000, 86'400'000, [](Settings& settings, int64_t value) {
                    settings.limits.connection_idle_max = std::chrono::milliseconds(value);
                  })});
  rows.push_back({group, "KAFKA_FETCH_MAX_BYTES", "fetch.max.bytes", "bytes", "57671680",
                  between(1024, 1 << 30), "Most bytes in the answer to a Fetch (but at least one batch).",
                  integer(1024, 1 << 30, &Limits::fetch_response_bytes_max)});
  rows.push_back({group, "KAFKA_MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS",
                  "max.incremental.fetch.session.cache.slots", "number", "1000", between(0, 1'000'000),
                  "Fetch sessions remembered. A client without one sends all its partitions each time.",
                  integer(0, 1'000'000, &Limits::fetch_sessions_max)});
}

void add_operation(std::vector<SettingRow>& rows) {
  auto group = SettingGroup::kOperation;
  rows.push_back({group, "KAFSCALE_LOG_LEVEL", "", "word", "info", "debug, info, warn, error or off",
                  "Least level of the lines on standard error.", read_log_level});
  rows.push_back({group, "KAFSCALE_LOG_FORMAT", "", "word", "text", "text or json", "Form of those lines.",
                  read_log_format});
  rows.push_back({group, "KAFSCALE_TRACE_KAFKA", "", "true/false", "false", "",
                  "Logs every request and response, without record contents, at level debug.",
                  boolean(&Settings::trace_kafka)});
  rows.push_back({group, "KAFSCALE_STARTUP_TIMEOUT_SEC", "", "s", "30", between(1, 3'600),
                  "A start that takes longer has failed.",
                  duration(1s, 1, 3'600, &Settings::startup_timeout)});
  rows.push_back({group, "VARVE_SHUTDOWN_TIMEOUT_SEC", "", "s", "30", between(0, 3'600),
                  "After SIGTERM, how long requests under way may take to finish.",
                  duration(1s, 0, 3'600, &Settings::shutdown_timeout)});
  rows.push_back({group, "KAFSCALE_THROUGHPUT_WINDOW_SEC", "", "s", "60", between(1, 3'600),
                  "Window of kafscale_produce_rps and kafscale_fetch_rps.",
                  duration(1s, 1, 3'600, &Settings::throughput_window)});
  rows.push_back({group, "KAFKA_NUM_NETWORK_THREADS", "num.network.threads", "number", "0", between(0, 256),
                  "Threads for connections; 0: one a processor.", integer(0, 256, &Settings::io_threads)});
  rows.push_back({group, "KAFSCALE_ENV", "", "word", "", "",
                  "`prod` warns at start about settings that were left at values for trying out.", ignore});
}

// Known names whose work is not built: a start that left them unheeded would lie to the operator
// (invariant 12). Values that ask for nothing are taken.
void add_later(std::vector<SettingRow>& rows) {
  const std::vector<std::string_view> kFalse = {"false", "0", "no", "off"};
  auto add = [&rows](std::string_view env, std::vector<std::string_view> neutral, std::string_view what,
                     bool is_secret = false) {
    std::string allowed = "not set";
    for (std::string_view value : neutral) allowed += fmt::format(" or `{}`", value);
    SettingRow row{SettingGroup::kLater, env, "", "", "", allowed, what, later(neutral, what), is_secret};
    rows.push_back(std::move(row));
  };
  for (std::string_view name :
       {"KAFSCALE_S3_READ_BUCKET", "KAFSCALE_S3_READ_REGION", "KAFSCALE_S3_READ_ENDPOINT"}) {
    add(name, {}, "a read replica of the bucket");
  }
  add("KAFSCALE_S3_CONCURRENCY", {"64"}, "objects in S3");
  add("KAFSCALE_S3_HEALTH_WINDOW_SEC", {"60"}, "health of S3");
  add("KAFSCALE_S3_LATENCY_WARN_MS", {"500"}, "health of S3");
  add("KAFSCALE_S3_LATENCY_CRIT_MS", {"2000"}, "health of S3");
  add("KAFSCALE_S3_ERROR_RATE_WARN", {"0.01"}, "health of S3");
  add("KAFSCALE_S3_ERROR_RATE_CRIT", {"0.05"}, "health of S3");
  add("KAFSCALE_USE_MEMORY_S3", kFalse, "objects in memory only");
  add("KAFSCALE_INDEX_CACHE_BYTES", {"104857600"}, "a cache of segment indexes");
  add("KAFSCALE_READAHEAD_SEGMENTS", {"2"}, "read-ahead of segments");
  add("KAFSCALE_ETCD_ENDPOINTS", {}, "the metadata log in etcd");
  add("KAFSCALE_ETCD_USERNAME", {}, "the metadata log in etcd");
  for (std::string_view name :
       {"KAFSCALE_ETCD_CERT_FILE", "KAFSCALE_ETCD_KEY_FILE", "KAFSCALE_ETCD_CA_FILE"}) {
    add(name, {}, "the metadata log in etcd");
  }
  add("KAFSCALE_ETCD_PASSWORD", {}, "the metadata log in etcd", true);
  add("KAFSCALE_CONTROL_ADDR", {}, "the gRPC control port");
  add("KAFSCALE_TLS_ENABLED", kFalse, "TLS");
  add("KAFSCALE_TLS_CLIENT_AUTH", kFalse, "TLS");
  for (std::string_view name : {"KAFSCALE_TLS_CERT_FILE", "KAFSCALE_TLS_KEY_FILE", "KAFSCALE_TLS_CA_FILE"}) {
    add(name, {}, "TLS");
  }
  add("KAFSCALE_ACL_ENABLED", kFalse, "access control");
  add("KAFSCALE_ACL_JSON", {}, "access control");
  add("KAFSCALE_ACL_FILE", {}, "access control");
  add("KAFSCALE_ACL_FAIL_OPEN", kFalse, "access control");
  add("KAFSCALE_PRINCIPAL_SOURCE", {"client_id"}, "access control");
  add("KAFSCALE_PROXY_PROTOCOL", kFalse, "the PROXY protocol");
  add("KAFSCALE_LAG_SAMPLE_INTERVAL_SEC", {"5"}, "consumer lag");
}

}  // namespace

const std::vector<SettingRow>& setting_table() {
  static const std::vector<SettingRow> kTable = [] {
    std::vector<SettingRow> rows;
    add_network(rows);
    add_storage(rows);
    add_metadata(rows);
    add_write_path(rows);
    add_topics(rows);
    add_groups(rows);
    add_limits(rows);
    add_operation(rows);
    add_later(rows);
    return rows;
  }();
  return kTable;
}

bool belongs_to_another_program(std::string_view env) {
  static constexpr std::string_view kPrefixes[] = {
      "KAFSCALE_CONSOLE_", "KAFSCALE_UI_",    "KAFSCALE_MCP_",  "KAFSCALE_OPERATOR_", "KAFSCALE_PROXY_",
      "KAFSCALE_LFS_",     "KAFSCALE_IDOC_",  "KAFSCALE_DEMO_", "KAFSCALE_E2E",       "KAFSCALE_ICEBERG_",
      "KAFSCALE_KIND_",    "KAFSCALE_KAFKA_", "KAFSCALE_SINK_", "KAFSCALE_CONSUMER_", "KAFSCALE_CHECKPOINT_",
  };
  static constexpr std::string_view kNames[] = {
      "KAFSCALE_NAMESPACE",         "KAFSCALE_BROKER_IMAGE",
      "KAFSCALE_CONSOLE_IMAGE",     "KAFSCALE_OPERATOR_IMAGE",
      "KAFSCALE_ETCD_TOOLS_IMAGE",  "KAFSCALE_LOCAL_FRANZ",
      "KAFSCALE_BOOTSTRAP_SERVERS", "KAFSCALE_TOPIC",
      "KAFSCALE_GROUP_ID",
  };
  auto begins = [env](std::string_view prefix) { return env.starts_with(prefix); };
  return std::ranges::any_of(kPrefixes, begins) || std::ranges::find(kNames, env) != std::end(kNames);
}

std::optional<runtime::Address> parse_address(std::string_view text, uint16_t default_port) {
  runtime::Address address;
  address.port = default_port;
  std::string_view port;
  if (text.starts_with('[')) {
    size_t end = text.find(']');
    if (end == std::string_view::npos || end == 1) return std::nullopt;
    address.host = std::string(text.substr(1, end - 1));
    std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return address;
    if (rest[0] != ':') return std::nullopt;
    port = rest.substr(1);
  } else {
    size_t colon = text.rfind(':');
    address.host = std::string(text.substr(0, colon));
    if (address.host.find_first_of(": /") != std::string::npos) return std::nullopt;
    if (colon == std::string_view::npos) {
      if (address.host.empty()) return std::nullopt;
      return address;
    }
    port = text.substr(colon + 1);
  }
  std::optional<int64_t> number = setting_readers::parse_number<int64_t>(port);
  if (!number || *number < 0 || *number > 65535) return std::nullopt;
  address.port = static_cast<uint16_t>(*number);
  return address;
}

}  // namespace varve::broker
