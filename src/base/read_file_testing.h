// Golden files and format pages, for the tests that hold the formats to them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace varve {

// The whole file; tests run at the top of the tree. A file that cannot be read fails the test.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(file.good()) << path << " is read from the top of the tree";
  return text.str();
}

}  // namespace varve
