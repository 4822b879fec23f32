#include "apps/varve/line_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace varve::apps {
namespace {

LogRecord record(std::string_view message) {
  return {.time = WallTime(0),
          .level = LogLevel::kInfo,
          .component = "test",
          .message = message,
          .bound = {},
          .fields = {}};
}

class LineSinkTest : public ::testing::Test {
 protected:
  LineSinkTest() { EXPECT_EQ(::pipe(pipe_.data()), 0); }
  ~LineSinkTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::string read_some() {
    std::string text(65536, '\0');
    ssize_t size = ::read(pipe_[0], text.data(), text.size());
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return text;
  }

  std::array<int, 2> pipe_{};
};

TEST_F(LineSinkTest, EachRecordIsOneLine) {
  LineSink sink(pipe_[1], LogFormat::kText);
  sink.write(record("one"));
  sink.write(record("two"));
  EXPECT_THAT(read_some(), ::testing::MatchesRegex(".*one\n.*two\n"));
}

TEST_F(LineSinkTest, AFullPipeDropsLinesInsteadOfWaitingAndTheNextOneSaysHowMany) {
  LineSink sink(pipe_[1], LogFormat::kText);
  std::string filler(1000, 'x');
  for (int i = 0; i < 200; ++i) sink.write(record(filler));
  while (read_some().size() == 65536) {
  }
  sink.write(record("after"));
  EXPECT_THAT(read_some(), ::testing::ContainsRegex("after.*lines_dropped=[1-9]"));
}

TEST_F(LineSinkTest, ALineLongerThanAPipeTakesAtOnceIsCut) {
  LineSink sink(pipe_[1], LogFormat::kJson);
  sink.write(record(std::string(100'000, 'y')));
  std::string text = read_some();
  EXPECT_LE(text.size(), 4096u);
  EXPECT_THAT(text, ::testing::EndsWith(" bytes cut)\"}\n"));
}

}  // namespace
}  // namespace varve::apps
