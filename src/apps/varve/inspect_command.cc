#include "apps/varve/inspect_command.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "apps/varve/admin_client.h"
#include "apps/varve/exit_codes.h"
#include "apps/varve/inspect_text.h"
#include "broker/data_folder.h"
#include "metadata/log/sqlite/sqlite_log.h"
#include "object_store/fs/key_path.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"

namespace varve::apps {
namespace {

using Page = std::vector<std::pair<LogPosition, std::vector<uint8_t>>>;

int complain(std::string_view sentence) {
  fmt::print(stderr, "varve inspect: {}\n", sentence);
  return kExitFailed;
}

std::optional<std::vector<uint8_t>> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file && bytes.empty()) return std::nullopt;
  return bytes;
}

int inspect_object(const InspectOptions& options) {
  auto bytes = read_file(options.file);
  if (!bytes) return complain(fmt::format("cannot read {}", options.file));
  auto object = storage::parse_wal_object(*bytes);
  if (!object)
    return complain(fmt::format("{} is no whole WAL object: {}", options.file, object.error().message));
  bool is_sound = false;
  fmt::print("{}", wal_object_text(*bytes, *object, is_sound));
  return is_sound ? kExitDone : kExitFailed;
}

std::filesystem::path objects_folder(const InspectOptions& options) {
  return broker::store_options_in(options.data_folder, options.key_namespace).root;
}

// The manifest with the highest position.
std::optional<std::filesystem::path> newest_manifest(const InspectOptions& options) {
  std::optional<metadata::FoundSnapshot> newest;
  std::error_code error;
  std::string prefix = metadata::manifests_prefix(options.key_namespace);
  std::filesystem::path folder = objects_folder(options) / object_store::path_of_key(prefix);
  for (const auto& log : std::filesystem::directory_iterator(folder, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(log.path(), error)) {
      std::string key = prefix + log.path().filename().string() + "/" + entry.path().filename().string();
      auto found = metadata::parse_manifest_key(options.key_namespace, std::move(key));
      if (found && (!newest || found->position > newest->position)) newest = std::move(*found);
    }
  }
  if (!newest) return std::nullopt;
  return objects_folder(options) / object_store::path_of_key(newest->key);
}

int inspect_snapshot(const InspectOptions& options) {
  std::optional<std::filesystem::path> path = newest_manifest(options);
  if (!options.file.empty()) path = options.file;
  if (!path) {
    return complain(fmt::format("there is no snapshot under {} (a short log needs none)",
                                objects_folder(options).string()));
  }
  auto bytes = read_file(*path);
  if (!bytes) return complain(fmt::format("cannot read {}", path->string()));
  auto manifest = metadata::decode_manifest(*bytes);
  if (!manifest)
    return complain(fmt::format("{} is no manifest: {}", path->string(), manifest.error().message));
  fmt::print("{}", manifest_text(*manifest));

  std::vector<Slice> chunks;
  for (const auto& chunk : manifest->chunks) {
    std::filesystem::path file = objects_folder(options) / object_store::path_of_key(chunk.key);
    auto content = read_file(file);
    if (!content)
      return complain(fmt::format("chunk {} is missing: the snapshot cannot be loaded", file.string()));
    chunks.push_back(Slice::take(std::move(*content)));
  }
  auto state = metadata::State::from_chunks(chunks);
  if (!state) return complain(fmt::format("the chunks make no state: {}", state.error().message));
  fmt::print("{}", state_text(*state));
  if (state->hash() != manifest->state_hash)
    return complain("DAMAGED: the state's hash is not the manifest's");
  return kExitDone;
}

int print_page(const Page& page) {
  int code = kExitDone;
  for (const auto& [position, bytes] : page) {
    auto entry = metadata::decode_entry(bytes);
    if (entry) {
      fmt::print("{}", entry_text(position, *entry));
    } else {
      fmt::print("{} DAMAGED: {}\n", position, entry.error().message);
      code = kExitFailed;
    }
  }
  return code;
}

runtime::Task<metadata::LogResult<Page>> read_log(runtime::Runtime& runtime, metadata::SqliteLog& log,
                                                  uint64_t after, uint64_t limit) {
  using Read = metadata::LogResult<Page>;
  auto opened = co_await log.open(Random(runtime.random_seed()).uuid());
  if (!opened) co_return pass_error(opened);
  Page result;
  LogPosition position(after);
  while (result.size() < limit) {
    auto page = co_await log.read(position, 1 << 20);
    if (!page) co_return pass_error(page);
    if (page->entries.empty()) break;
    for (const metadata::LogEntry& entry : page->entries) {
      if (result.size() == limit) break;
      ByteView bytes = entry.bytes.view();
      result.emplace_back(entry.position, std::vector<uint8_t>(bytes.begin(), bytes.end()));
      position = entry.position;
    }
  }
  co_await log.close();
  co_return Read(std::move(result));
}

int inspect_stopped_log(const InspectOptions& options) {
  metadata::SqliteLogOptions log_options = broker::log_options_in(options.data_folder);
  const std::string& folder = log_options.folder;
  if (!std::filesystem::exists(folder + "/log.db"))
    return complain(fmt::format("there is no log in {}", folder));
  runtime::AsioRuntime runtime({.io_threads = 1, .disk_threads = 1});
  log_options.ballast_bytes = 0;
  metadata::SqliteLog log(runtime, log_options);
  auto page = runtime::run_blocking(runtime.io(0), read_log(runtime, log, options.after, options.limit));
  runtime.stop();
  if (page) return print_page(*page);
  if (page.error().code == metadata::LogErrc::kLocked) {
    return complain(fmt::format("a broker uses {}; ask it with --admin host:port", folder));
  }
  return complain(page.error().message);
}

// Lines of "<position> <hexadecimal>".
std::optional<Page> parse_page(std::string_view text) {
  Page page;
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    size_t space = line.find(' ');
    uint64_t position = 0;
    auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), position);
    if (error != std::errc() || space == std::string_view::npos || stop != line.data() + space)
      return std::nullopt;
    std::vector<uint8_t> bytes;
    for (size_t i = space + 1; i + 1 < line.size(); i += 2) {
      uint8_t byte = 0;
      auto [after, wrong] = std::from_chars(line.data() + i, line.data() + i + 2, byte, 16);
      if (wrong != std::errc() || after != line.data() + i + 2) return std::nullopt;
      bytes.push_back(byte);
    }
    page.emplace_back(LogPosition(position), std::move(bytes));
  }
  return page;
}

int inspect_running_log(const InspectOptions& options) {
  auto answer = admin_get(options.admin, fmt::format("/log?after={}&limit={}", options.after, options.limit));
  if (!answer) return complain(answer.error());
  std::optional<Page> page = parse_page(*answer);
  if (!page) return complain(fmt::format("{} does not answer as a varve broker does", options.admin));
  return print_page(*page);
}

}  // namespace

int run_inspect(const InspectOptions& options) {
  switch (options.what) {
    case InspectOptions::What::kObject:
      return inspect_object(options);
    case InspectOptions::What::kSnapshot:
      return inspect_snapshot(options);
    case InspectOptions::What::kLog:
      return options.admin.empty() ? inspect_stopped_log(options) : inspect_running_log(options);
  }
  return kExitFailed;
}

}  // namespace varve::apps
