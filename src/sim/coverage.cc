#include "sim/coverage.h"

#include <fmt/format.h>

namespace varve::sim {

void Coverage::add(const std::map<std::string, uint64_t, std::less<>>& happenings) {
  ++runs_;
  for (const auto& [name, times] : happenings) {
    Count& count = counts_[name];
    ++count.runs;
    count.times += times;
  }
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> names;
  for (const std::string& name : expected_) {
    auto found = counts_.find(name);
    uint64_t runs = found == counts_.end() ? 0 : found->second.runs;
    if (runs * 100 < runs_) names.push_back(name);
  }
  return names;
}

std::string Coverage::table() const {
  std::map<std::string, Count, std::less<>> rows = counts_;
  for (const std::string& name : expected_) rows.try_emplace(name);
  std::string text = fmt::format("{:<40} {:>8} {:>7} {:>10}\n", "what happened", "runs", "share", "times");
  for (const auto& [name, count] : rows) {
    double share = runs_ == 0 ? 0 : 100.0 * static_cast<double>(count.runs) / static_cast<double>(runs_);
    text += fmt::format("{:<40} {:>8} {:>6.1f}% {:>10}\n", name, count.runs, share, count.times);
  }
  return text;
}

}  // namespace varve::sim
