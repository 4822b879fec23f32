// The Java client's encodings of random messages, made by tools/vectors/vectors.py.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "protocol/random/vector_line.h"

namespace varve::protocol {
namespace {

TEST(Vectors, JavasBytesOfEveryApiAndVersionDecodeAndEncodeToTheSameBytes) {
  VectorCounts counts;
  // (key, kind, version) -> messages seen
  std::map<std::string, int> seen;
  for (const auto& file : std::filesystem::directory_iterator(VARVE_PROTOCOL_VECTORS)) {
    std::ifstream lines(file.path());
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      ASSERT_EQ(check_vector_line(line, counts), "") << file.path() << ":" << number;
      size_t end = 0;
      for (int i = 0; i < 3; ++i) end = line.find(' ', end + 1);
      ++seen[line.substr(0, end)];
    }
  }
  for (const MessageOps* ops : all_messages()) {
    for (int16_t version = ops->min_version; version <= ops->max_version; ++version) {
      std::string id = fmt::format("{} {} {}", static_cast<int16_t>(ops->key),
                                   ops->is_request ? "request" : "response", version);
      EXPECT_GE(seen[id], 10) << "no vectors of " << ops->name << " version " << version;
    }
  }
  fmt::print("{} messages of {} message versions, {} also with unknown tags\n", counts.messages, seen.size(),
             counts.with_unknown_tags);
  EXPECT_GT(counts.with_unknown_tags, 100u);
}

TEST(Vectors, ALineThatIsAByteTooLongOrTooShortDoesNotPass) {
  VectorCounts counts;
  Random random(3);
  for (const MessageOps* ops : all_messages()) {
    std::string line = random_vector_line(*ops, ops->max_version, random);
    ASSERT_EQ(check_vector_line(line, counts), "");
    if (line.ends_with('-')) continue;
    EXPECT_NE(check_vector_line(line + "00", counts), "") << ops->name;
    EXPECT_NE(check_vector_line(line.substr(0, line.size() - 2), counts), "") << ops->name;
  }
}

}  // namespace
}  // namespace varve::protocol
