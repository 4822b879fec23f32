// Ends the process with the simulator's exit code, and the line that repeats the run, when it dies of a failed CHECK,
// a signal or a sanitizer.
#pragma once

#include <string_view>

namespace varve::sim {

inline constexpr int kExitPassed = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound =
    3;  // a planted bug that no seed found, or a fault that happened too rarely
inline constexpr int kExitCrash = 127;
inline constexpr int kExitStuck = 128;
inline constexpr int kExitWrong = 129;

// While it lives, the process dies as it says. One at a time.
class CrashReport {
 public:
  CrashReport();
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

  // What to print, and how to exit, from now on. The line is copied.
  void set(std::string_view line, int exit_code);
};

}  // namespace varve::sim
