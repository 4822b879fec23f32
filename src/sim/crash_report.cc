#include "sim/crash_report.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

// Present in programs built with a sanitizer only.
// NOLINTNEXTLINE(readability-identifier-naming): the sanitizers' name
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace varve::sim {
namespace {

// Read by a signal handler, which can be handed nothing: hence process-wide.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::array<char, 512> report;
size_t report_size = 0;
int report_exit_code = kExitCrash;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void die() {
  (void)!write(STDERR_FILENO, report.data(), report_size);
  _exit(report_exit_code);
}

void on_signal(int) { die(); }

void handle_signals(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigaction(SIGABRT, &action, nullptr);
  // A sanitizer has handlers of its own for the others, prints its report and calls back.
  if (__sanitizer_set_death_callback != nullptr) return;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

}  // namespace

CrashReport::CrashReport() {
  handle_signals(on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(die);
}

CrashReport::~CrashReport() {
  handle_signals(SIG_DFL);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(nullptr);
}

void CrashReport::set(std::string_view line, int exit_code) {
  report_size = std::min(line.size(), report.size());
  std::memcpy(report.data(), line.data(), report_size);
  report_exit_code = exit_code;
}

}  // namespace varve::sim
