#include "base/log.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace varve {
namespace {

class LinesSink final : public LogSink {
 public:
  void write(const LogRecord& record) override {
    text.push_back(format_log_text(record));
    json.push_back(format_log_json(record));
  }
  std::vector<std::string> text;
  std::vector<std::string> json;
};

struct LogTest : ::testing::Test {
  LinesSink sink;
  Logger log{sink, [] { return WallTime(1796008800123); }, LogLevel::kInfo, "server"};
};

TEST_F(LogTest, FormatsTextAndJsonWithTypedFields) {
  log.with({"broker", BrokerId(2)})
      .warn("batch refused", {{"topic", "a b"}, {"partition", 3}, {"crc_ok", false}, {"share", 0.5}});
  EXPECT_EQ(
      sink.text.at(0),
      "2026-11-30T03:20:00.123Z WARN  server: batch refused broker=2 topic=\"a b\" partition=3 crc_ok=false "
      "share=0.5");
  EXPECT_EQ(sink.json.at(0),
            "{\"time\":\"2026-11-30T03:20:00.123Z\",\"level\":\"warn\",\"component\":\"server\","
            "\"message\":\"batch refused\",\"broker\":2,\"topic\":\"a b\",\"partition\":3,\"crc_ok\":false,"
            "\"share\":0.5}");
}

TEST_F(LogTest, TextFromOutsideCannotForgeALine) {
  log.info("client gone", {{"client_id", std::string("x\n2026 \"=\x01\xff\xc3\xa4\xed\xa0\x80")}});
  EXPECT_EQ(sink.text.at(0),
            "2026-11-30T03:20:00.123Z INFO  server: client gone "
            "client_id=\"x\\n2026 \\\"=\\u0001\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST_F(LogTest, LevelsFilterAndChangeForAllCopies) {
  Logger copy = log.component("ingest");
  copy.debug("no");
  log.set_level(LogLevel::kDebug);
  copy.debug("yes");
  log.set_level(LogLevel::kOff);
  copy.error("no");
  EXPECT_FALSE(copy.enabled(LogLevel::kOff));
  ASSERT_EQ(sink.text.size(), 1u);
  EXPECT_TRUE(sink.text[0].ends_with("DEBUG ingest: yes")) << sink.text[0];
  Logger().error("nobody listens");
  EXPECT_EQ(parse_log_level("WARNING"), LogLevel::kWarn);
  EXPECT_EQ(parse_log_level("Info"), LogLevel::kInfo);
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
}

TEST_F(LogTest, SecretsAreNeverShown) {
  Redacted secret("hunter2");
  Redacted copy = secret;
  Redacted moved = std::move(copy);
  log.with({"bound", secret}).info("login", {{"password", moved}});
  EXPECT_EQ(sink.text.at(0).find("hunter2"), std::string::npos);
  EXPECT_TRUE(sink.text.at(0).ends_with("bound=[redacted] password=[redacted]")) << sink.text[0];
  EXPECT_EQ(fmt::format("{}", secret), "[redacted]");
  EXPECT_EQ(moved.reveal(), "hunter2");
}

TEST_F(LogTest, ARepeatedMessageIsSaidOncePerIntervalWithACount) {
  LogLimiter limiter(10s);
  for (int second = 0; second < 25; ++second) {
    log.limited(limiter, MonotonicTime(std::chrono::seconds(second)), LogLevel::kWarn, "bad frame",
                {{"peer", "p"}});
  }
  ASSERT_EQ(sink.text.size(), 3u);
  EXPECT_TRUE(sink.text[0].ends_with("bad frame peer=p"));
  EXPECT_TRUE(sink.text[1].ends_with("bad frame peer=p quiet=9"));
  EXPECT_TRUE(sink.text[2].ends_with("bad frame peer=p quiet=9"));
}

TEST_F(LogTest, TheStreamSinkWritesWholeLines) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  StreamSink stream(file, LogFormat::kJson);
  Logger to_file(stream, [] { return WallTime(0); }, LogLevel::kInfo, "a");
  to_file.info("one");
  to_file.info("two");
  std::rewind(file);
  char buffer[512] = {};
  size_t size = std::fread(buffer, 1, sizeof(buffer), file);
  std::fclose(file);
  EXPECT_EQ(
      std::string_view(buffer, size),
      "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"component\":\"a\",\"message\":\"one\"}\n"
      "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"component\":\"a\",\"message\":\"two\"}\n");
}

}  // namespace
}  // namespace varve
