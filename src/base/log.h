// Structured logging: a level, a component, a message that is a constant sentence, and key=value fields. The
// sink and the clock are injected, so that ten brokers in one process, or in the simulator, keep their lines
// apart.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/strong.h"
#include "base/time.h"

namespace varve {

enum class LogLevel : uint8_t { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3, kOff = 4 };

std::string_view log_level_name(LogLevel level);
// "debug", "info", "warn" (or "warning"), "error", "off"; any case. nullopt: no such level.
std::optional<LogLevel> parse_log_level(std::string_view text);

// A secret that cannot be printed by accident: fmt and log fields show "[redacted]"; reveal() is the one way
// in, and easy to search for. The memory is wiped when it dies.
class Redacted {
 public:
  Redacted() = default;
  explicit Redacted(std::string secret) : secret_(std::move(secret)) {}
  Redacted(const Redacted&) = default;
  Redacted(Redacted&& other) noexcept;
  Redacted& operator=(Redacted other) noexcept;
  ~Redacted();

  const std::string& reveal() const { return secret_; }
  bool empty() const { return secret_.empty(); }

 private:
  std::string secret_;
};
inline constexpr std::string_view kRedactedText = "[redacted]";

// One field. Text is viewed, not copied: a field lives no longer than the statement that logs it.
struct LogField {
  using Value = std::variant<int64_t, uint64_t, double, bool, std::string_view>;

  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const char* text) : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, const std::string& text) : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, bool flag) : key(name), value(flag) {}
  LogField(std::string_view name, double number) : key(name), value(number) {}
  LogField(std::string_view name, const Redacted&) : key(name), value(kRedactedText) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  LogField(std::string_view name, T number) : key(name) {
    if constexpr (std::is_signed_v<T>) {
      value = static_cast<int64_t>(number);
    } else {
      value = static_cast<uint64_t>(number);
    }
  }
  template <class T, class Tag>
  LogField(std::string_view name, const Strong<T, Tag>& id) : LogField(name, id.value()) {}

  std::string_view key;
  Value value;
};

// What a sink gets; valid during the call only.
struct LogRecord {
  WallTime time;
  LogLevel level;
  std::string_view component;
  std::string_view message;
  // Those bound to the logger (a broker's id, a connection), then those of the call.
  std::span<const LogField> bound;
  std::span<const LogField> fields;
};

// 2026-11-30T03:20:00.123Z INFO  server: batch refused topic=t partition=3 reason="bad CRC"
std::string format_log_text(const LogRecord& record);
// One JSON object; bytes that are not UTF-8 become U+FFFD.
std::string format_log_json(const LogRecord& record);

// Owned by the broker (or the simulator), outlives its loggers. write() is called from any thread and must
// neither throw nor log.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(const LogRecord& record) = 0;
};

enum class LogFormat : uint8_t { kText, kJson };

// Writes each record as one line with one call, so that lines of several threads do not mix. A reader of
// stderr that stops reading stops the caller: the broker puts its own queue in front.
class StreamSink final : public LogSink {
 public:
  // `stream` is not closed.
  StreamSink(std::FILE* stream, LogFormat format) : stream_(stream), format_(format) {}
  void write(const LogRecord& record) override;

 private:
  std::FILE* stream_;
  LogFormat format_;
};

// Lets one line through per interval and counts the rest, for messages that a client or a broken disk can
// cause a million times. Any thread. One limiter per place in the code (or per peer, if the holder bounds
// their number).
class LogLimiter {
 public:
  explicit LogLimiter(Duration interval) : interval_(interval) {}
  // nullopt: say nothing. Otherwise: how many were kept quiet since the last one said.
  std::optional<uint64_t> admit(MonotonicTime now);

 private:
  const Duration interval_;
  std::mutex mutex_;
  std::optional<MonotonicTime> last_;
  uint64_t quiet_ = 0;
};

// A value: copying it is cheap, copies share sink, clock and level. Any thread. A default Logger drops
// everything.
class Logger {
 public:
  using Clock = std::function<WallTime()>;

  Logger() = default;
  // `sink` and what `clock` reads outlive every copy. `clock` is called from any thread.
  Logger(LogSink& sink, Clock clock, LogLevel level, std::string component);

  // The same logger under another component, or with one more field on every line.
  Logger component(std::string name) const;
  Logger with(const LogField& field) const;

  // Changes the level of all copies.
  void set_level(LogLevel level);
  bool enabled(LogLevel level) const;

  void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::kDebug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::kInfo, message, fields);
  }
  void warn(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::kWarn, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::kError, message, fields);
  }
  // Says it if `limiter` admits it at `now` (the runtime's clock), with a field quiet=<n> if n were left out.
  void limited(LogLimiter& limiter, MonotonicTime now, LogLevel level, std::string_view message,
               std::initializer_list<LogField> fields = {}) const;

 private:
  struct Shared {
    LogSink& sink;
    Clock clock;
    std::atomic<LogLevel> level;
  };
  // Owns the text that its field views.
  struct BoundField {
    std::string key;
    std::string text;
    LogField::Value value;
  };

  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) const;

  std::shared_ptr<Shared> shared_;
  std::string component_;
  std::vector<BoundField> bound_;
};

}  // namespace varve

template <>
struct fmt::formatter<varve::Redacted> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const varve::Redacted&, Context& context) const {
    return fmt::formatter<std::string_view>::format(varve::kRedactedText, context);
  }
};
