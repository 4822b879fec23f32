// Errors are values. Each module has one small enum of causes and an alias of ErrorOf over it; Kafka error codes
// are made only in broker/handlers.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace varve {

// A cause a program can act on, and a sentence a person can act on.
template <class Code>
struct ErrorOf {
  Code code;
  std::string message;

  bool operator==(const ErrorOf&) const = default;
};

template <class T, class E>
using Result = std::expected<T, E>;

// fail(StoreErrc::kTimeout, "..."): the unexpected side of a Result over ErrorOf<Code>.
template <class Code>
std::unexpected<ErrorOf<Code>> fail(Code code, std::string message) {
  return std::unexpected(ErrorOf<Code>{code, std::move(message)});
}

// Passes an error on unchanged: `if (!r) return pass_error(r);`
template <class T, class E>
std::unexpected<E> pass_error(std::expected<T, E>& result) {
  return std::unexpected(std::move(result.error()));
}

}  // namespace varve
