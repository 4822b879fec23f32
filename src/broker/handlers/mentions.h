// How often a request names one thing: an answer of a whole group or topic is many times as large as its name, so it is
// given so often and no more (invariant 11).
#pragma once

#include <cstddef>
#include <map>

namespace varve::broker {

// Apache Kafka answers each mention. No client asks twice; tools that list a thing twice by accident get what they ask.
inline constexpr size_t kMentionsMax = 2;

// Of one request. `Name` is what the request names, or a view of it.
template <class Name>
class Mentions {
 public:
  // Whether it has been named too often by now: the answer to this mention is INVALID_REQUEST.
  bool is_too_often(const Name& name) { return ++counts_[name] > kMentionsMax; }

 private:
  std::map<Name, size_t> counts_;
};

}  // namespace varve::broker
