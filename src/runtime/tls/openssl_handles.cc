#include "runtime/tls/openssl_handles.h"

#include <fmt/format.h>
#include <openssl/err.h>

namespace varve::runtime {

std::string take_openssl_reason() {
  unsigned long error = ERR_peek_error();
  ERR_clear_error();
  if (error == 0) return "no reason given";
  const char* reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : fmt::format("error {:x}", error);
}

}  // namespace varve::runtime
