// What the conformance suites of the runtime's parts need of a runtime.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "runtime/runtime.h"

namespace varve::runtime {

// A runtime and a way for the test's thread to wait for it.
class RuntimeUnderTest {
 public:
  virtual ~RuntimeUnderTest() = default;
  virtual Runtime& runtime() = 0;
  // Runs `task` on `executor`, as a root, to its end. From the test's thread, outside any task.
  virtual void run(Executor& executor, Task<> task) = 0;
};

struct RuntimeCase {
  std::string name;
  std::function<std::unique_ptr<RuntimeUnderTest>()> make;

  // For gtest, which would print its bytes.
  friend std::ostream& operator<<(std::ostream& out, const RuntimeCase& self) { return out << self.name; }
};
inline std::string case_name(const testing::TestParamInfo<RuntimeCase>& info) { return info.param.name; }

}  // namespace varve::runtime
