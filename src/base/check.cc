#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace varve {
namespace {
// The one process-wide setting (check.h).
CheckHook check_hook = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
}  // namespace

void set_check_hook(CheckHook hook) { check_hook = hook; }

void check_failed(const char* file, int line, const char* condition, std::string_view detail) {
  std::string message = fmt::format("CHECK failed at {}:{}: {}", file, line, condition);
  if (!detail.empty()) message += fmt::format(": {}", detail);
  std::fprintf(stderr, "%s\n", message.c_str());
  if (check_hook != nullptr) {
    CheckHook hook = check_hook;
    check_hook = nullptr;
    hook(message);
  }
  std::abort();
}

}  // namespace varve
