#include "base/log_line.h"

#include <fmt/format.h>

#include <deque>
#include <vector>

#include "base/quoted_text.h"

namespace varve {
namespace {

// What says that a text was cut takes less.
constexpr size_t kMarkBytesMax = 48;

std::string formatted(const LogRecord& record, LogFormat format) {
  return format == LogFormat::kJson ? format_log_json(record) : format_log_text(record);
}

// A record whose texts can be replaced.
class Cuttable {
 public:
  explicit Cuttable(const LogRecord& record)
      : record_(record),
        bound_(record.bound.begin(), record.bound.end()),
        fields_(record.fields.begin(), record.fields.end()) {
    record_.bound = bound_;
    record_.fields = fields_;
  }
  Cuttable(const Cuttable&) = delete;
  Cuttable& operator=(const Cuttable&) = delete;

  const LogRecord& record() const { return record_; }

  // Takes about so many bytes off the line; false: no text is long enough.
  bool cut_longest(size_t bytes) {
    std::string_view* text = longest();
    if (text->size() <= kMarkBytesMax) return false;
    size_t present = quoted_bytes(*text);
    size_t gone = bytes + kMarkBytesMax;
    std::string_view kept = quotable_beginning(*text, present > gone ? present - gone : 0);
    made_.push_back(fmt::format("{}... ({} bytes cut)", kept, text->size() - kept.size()));
    *text = made_.back();
    return true;
  }
  void drop_fields() { record_.bound = record_.fields = {}; }

 private:
  std::string_view* longest() {
    std::string_view* longest = &record_.message;
    for (std::vector<LogField>* fields : {&bound_, &fields_}) {
      for (LogField& field : *fields) {
        auto* text = std::get_if<std::string_view>(&field.value);
        if (text != nullptr && text->size() > longest->size()) longest = text;
      }
    }
    return longest;
  }

  LogRecord record_;
  std::vector<LogField> bound_;
  std::vector<LogField> fields_;
  std::deque<std::string> made_;  // what cut texts view
};

}  // namespace

std::string format_log_line(const LogRecord& record, LogFormat format, size_t bytes_max) {
  std::string line = formatted(record, format);
  if (line.size() <= bytes_max) return line;
  Cuttable cuttable(record);
  while (line.size() > bytes_max && cuttable.cut_longest(line.size() - bytes_max)) {
    line = formatted(cuttable.record(), format);
  }
  if (line.size() > bytes_max) {
    cuttable.drop_fields();
    line = formatted(cuttable.record(), format);
  }
  return line;
}

}  // namespace varve
