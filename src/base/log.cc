#include "base/log.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/bytes.h"
#include "base/quoted_text.h"

namespace varve {
namespace {

// 2026-11-30T03:20:00.123Z
void append_time(std::string& out, WallTime time) {
  std::chrono::sys_time<std::chrono::milliseconds> point{std::chrono::milliseconds(time.value())};
  auto day = std::chrono::floor<std::chrono::days>(point);
  std::chrono::year_month_day date(day);
  std::chrono::hh_mm_ss clock(point - day);
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                 static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                 static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(),
                 clock.seconds().count(), clock.subseconds().count());
}

bool plain(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '='; });
}

void append_value(std::string& out, const LogField::Value& value, bool json) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    if (json || !plain(*text)) {
      append_quoted(out, *text);
    } else {
      out += *text;
    }
  } else if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) {
    out += json ? "null" : fmt::format("{}", *number);
  } else {
    std::visit([&](const auto& scalar) { fmt::format_to(std::back_inserter(out), "{}", scalar); }, value);
  }
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "unknown";
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (lower == "warning") return LogLevel::kWarn;
  for (LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError, LogLevel::kOff}) {
    if (lower == log_level_name(level)) return level;
  }
  return std::nullopt;
}

Redacted::Redacted(Redacted&& other) noexcept { secret_.swap(other.secret_); }

Redacted& Redacted::operator=(Redacted other) noexcept {
  secret_.swap(other.secret_);
  return *this;
}

Redacted::~Redacted() { ::explicit_bzero(secret_.data(), secret_.capacity()); }

std::string format_log_text(const LogRecord& record) {
  std::string out;
  append_time(out, record.time);
  out += ' ';
  for (char c : log_level_name(record.level)) out += static_cast<char>(c - 'a' + 'A');
  out.append(record.level == LogLevel::kInfo || record.level == LogLevel::kWarn ? 2 : 1, ' ');
  out += record.component;
  out += ": ";
  out += record.message;
  for (std::span<const LogField> fields : {record.bound, record.fields}) {
    for (const LogField& field : fields) {
      out += ' ';
      out += field.key;
      out += '=';
      append_value(out, field.value, false);
    }
  }
  return out;
}

std::string format_log_json(const LogRecord& record) {
  std::string out = "{\"time\":\"";
  append_time(out, record.time);
  out += "\",\"level\":\"";
  out += log_level_name(record.level);
  out += "\",\"component\":";
  append_quoted(out, record.component);
  out += ",\"message\":";
  append_quoted(out, record.message);
  for (std::span<const LogField> fields : {record.bound, record.fields}) {
    for (const LogField& field : fields) {
      out += ',';
      append_quoted(out, field.key);
      out += ':';
      append_value(out, field.value, true);
    }
  }
  out += '}';
  return out;
}

void StreamSink::write(const LogRecord& record) {
  std::string line = format_ == LogFormat::kJson ? format_log_json(record) : format_log_text(record);
  line += '\n';
  // A failed write has nowhere to be told.
  (void)std::fwrite(line.data(), 1, line.size(), stream_);
}

std::optional<uint64_t> LogLimiter::admit(MonotonicTime now) {
  std::lock_guard lock(mutex_);
  if (last_.has_value() && now - *last_ < interval_) {
    ++quiet_;
    return std::nullopt;
  }
  last_ = now;
  return std::exchange(quiet_, 0);
}

Logger::Logger(LogSink& sink, Clock clock, LogLevel level, std::string component)
    : shared_(std::make_shared<Shared>(sink, std::move(clock), level)), component_(std::move(component)) {}

Logger Logger::component(std::string name) const {
  Logger copy = *this;
  copy.component_ = std::move(name);
  return copy;
}

Logger Logger::with(const LogField& field) const {
  Logger copy = *this;
  BoundField bound{std::string(field.key), {}, field.value};
  if (const auto* text = std::get_if<std::string_view>(&field.value)) bound.text = *text;
  copy.bound_.push_back(std::move(bound));
  return copy;
}

void Logger::set_level(LogLevel level) {
  if (shared_ != nullptr) shared_->level.store(level, std::memory_order_relaxed);
}

bool Logger::enabled(LogLevel level) const {
  return shared_ != nullptr && level != LogLevel::kOff &&
         level >= shared_->level.load(std::memory_order_relaxed);
}

void Logger::write(LogLevel level, std::string_view message, std::span<const LogField> fields) const {
  std::vector<LogField> bound;
  bound.reserve(bound_.size());
  for (const BoundField& field : bound_) {
    bound.emplace_back(field.key, field.text);
    if (!std::holds_alternative<std::string_view>(field.value)) bound.back().value = field.value;
  }
  shared_->sink.write({shared_->clock(), level, component_, message, bound, fields});
}

void Logger::log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) const {
  if (enabled(level)) write(level, message, {fields.begin(), fields.size()});
}

void Logger::limited(LogLimiter& limiter, MonotonicTime now, LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) const {
  if (!enabled(level)) return;
  std::optional<uint64_t> quiet = limiter.admit(now);
  if (!quiet.has_value()) return;
  if (*quiet == 0) return write(level, message, {fields.begin(), fields.size()});
  std::vector<LogField> all(fields);
  all.emplace_back("quiet", *quiet);
  write(level, message, all);
}

}  // namespace varve
