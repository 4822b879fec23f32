// Integers that cannot be mixed up: an Offset is not a Position.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstddef>
#include <functional>

namespace varve {

// T: the integer stored. Tag: any type, makes the alias distinct. Arithmetic is by value() on purpose, but for
// the two steps that every counter needs: ++ and difference.
template <class T, class Tag>
class Strong {
 public:
  using Value = T;

  constexpr Strong() = default;
  constexpr explicit Strong(T value) : value_(value) {}

  constexpr T value() const { return value_; }
  constexpr auto operator<=>(const Strong&) const = default;

  constexpr Strong& operator++() {
    ++value_;
    return *this;
  }
  // This id, advanced by n.
  constexpr Strong plus(T n) const { return Strong(static_cast<T>(value_ + n)); }

 private:
  T value_{};
};

}  // namespace varve

template <class T, class Tag>
struct std::hash<varve::Strong<T, Tag>> {
  size_t operator()(const varve::Strong<T, Tag>& id) const noexcept { return std::hash<T>()(id.value()); }
};

template <class T, class Tag>
struct fmt::formatter<varve::Strong<T, Tag>> : fmt::formatter<T> {
  template <class Context>
  auto format(const varve::Strong<T, Tag>& id, Context& context) const {
    return fmt::formatter<T>::format(id.value(), context);
  }
};
