// Coverage: what happened in how many runs, so that a fault that no longer happens is noticed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve::sim {

class Coverage {
 public:
  explicit Coverage(std::span<const std::string_view> expected)
      : expected_(expected.begin(), expected.end()) {}

  // The happenings of one run and how often.
  void add(const std::map<std::string, uint64_t, std::less<>>& happenings);

  uint64_t runs() const { return runs_; }
  // Expected happenings met in fewer than 1 % of the runs.
  std::vector<std::string> missing() const;
  // A line each: name, runs in which it happened, share of the runs, times in all.
  std::string table() const;

 private:
  struct Count {
    uint64_t runs = 0;
    uint64_t times = 0;
  };

  std::vector<std::string> expected_;
  std::map<std::string, Count, std::less<>> counts_;
  uint64_t runs_ = 0;
};

}  // namespace varve::sim
