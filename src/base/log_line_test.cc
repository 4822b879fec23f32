#include "base/log_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/quoted_text.h"

namespace varve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr size_t kLineBytes = 4095;

LogRecord record_of(std::string_view message, std::span<const LogField> fields) {
  return {.time = WallTime(0),
          .level = LogLevel::kInfo,
          .component = "test",
          .message = message,
          .bound = {},
          .fields = fields};
}

// Whether it is one JSON object of names and of texts, numbers or words, with nothing behind it.
bool is_json_object(std::string_view text) {
  auto take = [&](char c) {
    bool is_there = !text.empty() && text[0] == c;
    if (is_there) text.remove_prefix(1);
    return is_there;
  };
  auto take_text = [&] {
    if (!take('"')) return false;
    while (!text.empty() && text[0] != '"') {
      if (static_cast<unsigned char>(text[0]) < 0x20) return false;
      if (!take('\\')) {
        text.remove_prefix(1);
        continue;
      }
      if (text.starts_with("u") && text.size() >= 5) {
        if (text.substr(1, 4).find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
        text.remove_prefix(5);
      } else if (!take('"') && !take('\\') && !take('n')) {
        return false;
      }
    }
    return take('"');
  };
  if (!take('{')) return false;
  do {
    if (!take_text() || !take(':')) return false;
    if (text.starts_with("\"")) {
      if (!take_text()) return false;
    } else {
      size_t end = text.find_first_of(",}");
      if (end == 0 || end == std::string_view::npos) return false;
      text.remove_prefix(end);
    }
  } while (take(','));
  return take('}') && text.empty();
}

bool is_utf8(std::string_view text) {
  std::string quoted;
  append_quoted(quoted, text);
  return !std::string_view(quoted).contains("\xef\xbf\xbd");
}

TEST(LogLine, OneThatFitsIsLeftAsItIs) {
  std::vector<LogField> fields = {{"name", "a\nb"}, {"count", 7}};
  LogRecord record = record_of("said", fields);
  std::string json = format_log_json(record);
  EXPECT_TRUE(is_json_object(json));
  EXPECT_EQ(format_log_line(record, LogFormat::kJson, json.size()), json);
  EXPECT_EQ(format_log_line(record, LogFormat::kText, kLineBytes), format_log_text(record));
}

// Shifted byte by byte, so that the cut falls everywhere into an escape and into a character.
TEST(LogLine, OneThatIsTooLongStaysJsonAndSaysWhatIsMissing) {
  std::string unit = "\"quoted\", a\nline, \x01 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 ";
  for (size_t shift = 0; shift < 2 * unit.size(); ++shift) {
    std::string text(shift, 'x');
    while (text.size() < 10 * 1024) text += unit;
    std::vector<LogField> fields = {{"first", 1}, {"message", text}, {"last", "end"}};
    LogRecord record = record_of("received", fields);
    std::string line = format_log_line(record, LogFormat::kJson, kLineBytes);
    EXPECT_TRUE(is_json_object(line)) << shift << ": " << line;
    EXPECT_TRUE(is_utf8(line)) << shift;
    EXPECT_LE(line.size(), kLineBytes);
    EXPECT_GT(line.size(), kLineBytes - 100) << "more is missing than has to be";
    EXPECT_THAT(line, HasSubstr("\"first\":1,\"message\":\""));
    EXPECT_THAT(line, EndsWith(" bytes cut)\",\"last\":\"end\"}"));
    std::string plain = format_log_line(record, LogFormat::kText, kLineBytes);
    EXPECT_LE(plain.size(), kLineBytes);
    EXPECT_THAT(plain, EndsWith(" bytes cut)\" last=end"));
    EXPECT_THAT(plain, Not(HasSubstr("\n")));
  }
}

TEST(LogLine, ItsLongestTextsAreCutAndShortOnesStay) {
  std::string ten(10'000, '"');
  std::string nine(9'000, '\x02');
  std::vector<LogField> fields = {
      {"a", ten}, {"b", nine}, {"c", "short"}, {"d", std::string_view("\xff\xfe", 2)}};
  std::string line = format_log_line(record_of("said", fields), LogFormat::kJson, kLineBytes);
  EXPECT_TRUE(is_json_object(line)) << line;
  EXPECT_LE(line.size(), kLineBytes);
  EXPECT_THAT(line, HasSubstr("(10000 bytes cut)"));
  EXPECT_THAT(line, HasSubstr("\"c\":\"short\""));
}

TEST(LogLine, OneOfTooManyFieldsKeepsItsSentence) {
  std::vector<LogField> fields;
  for (int i = 0; i < 1'000; ++i) fields.emplace_back("key", i);
  std::string line = format_log_line(record_of("said", fields), LogFormat::kJson, kLineBytes);
  EXPECT_TRUE(is_json_object(line)) << line;
  EXPECT_THAT(line, StartsWith("{\"time\""));
  EXPECT_THAT(line, EndsWith("\"message\":\"said\"}"));
}

TEST(QuotedText, TheBeginningThatIsTakenEndsWithACharacter) {
  std::string text = "a\xe2\x82\xac\"\n";
  EXPECT_EQ(quoted_bytes(text), 2u + 1 + 3 + 2 + 2);
  EXPECT_EQ(quotable_beginning(text, 100), text);
  EXPECT_EQ(quotable_beginning(text, 10), text);
  EXPECT_EQ(quotable_beginning(text, 9), "a\xe2\x82\xac\"");
  EXPECT_EQ(quotable_beginning(text, 7), "a\xe2\x82\xac");
  EXPECT_EQ(quotable_beginning(text, 5), "a");
  EXPECT_EQ(quotable_beginning(text, 2), "");
  EXPECT_EQ(quotable_beginning(text, 0), "");
}

}  // namespace
}  // namespace varve
