// CHECK: for our own bugs only. It stays on in every build; what the world can do (bad input, a failed disk, a
// lost reply) is a Result (result.h), never a CHECK.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace varve {

// Called with the message just before the process aborts, at most once. A simulator prints its seed here.
using CheckHook = void (*)(std::string_view message);

// Installs the hook for this process. Call it before threads start: it is the one process-wide setting.
void set_check_hook(CheckHook hook);

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view detail);

}  // namespace varve

// CHECK(condition) or CHECK(condition, "format {}", args...): aborts with the place, the text and the detail.
#define CHECK(condition, ...)                                                               \
  do {                                                                                      \
    if (!(condition)) [[unlikely]] {                                                        \
      ::varve::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                       \
  } while (false)
