#include "base/metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"

namespace varve {
namespace {

bool valid_name(std::string_view name, bool colons) {
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colons && c == ':');
    bool digit = c >= '0' && c <= '9';
    if (!letter && !(digit && i > 0)) return false;
  }
  return true;
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string label_text(const MetricLabels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    if (!out.empty()) out += ',';
    out += name;
    out += "=\"";
    append_escaped(out, value, true);
    out += '"';
  }
  return out;
}

void append_sample(std::string& out, std::string_view name, std::string_view suffix,
                   const std::string& labels, std::string_view le) {
  out += name;
  out += suffix;
  if (!labels.empty() || !le.empty()) {
    out += '{';
    out += labels;
    if (!le.empty()) {
      if (!labels.empty()) out += ',';
      out += "le=\"";
      out += le;
      out += '"';
    }
    out += '}';
  }
  out += ' ';
}

}  // namespace

Histogram::Histogram(std::string_view name, std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()),
      units_per_second_(name.ends_with("_seconds") ? 1
                        : name.ends_with("_ms")    ? 1000
                                                   : 0),
      counts_(std::make_unique<std::atomic<uint64_t>[]>(bounds.size() + 1)) {
  CHECK(!bounds_.empty() && std::isfinite(bounds_.back()), "{}: bad buckets", name);
  for (size_t i = 1; i < bounds_.size(); ++i)
    CHECK(bounds_[i - 1] < bounds_[i], "{}: buckets must rise", name);
}

void Histogram::observe(double value) {
  size_t index =
      static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
  counts_[index].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

void Histogram::observe(Duration span) {
  CHECK(units_per_second_ != 0, "a duration in a histogram whose name ends with no unit of time");
  observe(std::chrono::duration<double>(span).count() * units_per_second_);
}

uint64_t Histogram::count() const {
  uint64_t total = 0;
  for (size_t i = 0; i <= bounds_.size(); ++i) total += in_bucket(i);
  return total;
}

MetricRegistry::Instrument& MetricRegistry::slot(std::string_view name, std::string_view help, Kind kind,
                                                 MetricLabels labels) {
  auto found = families_.find(name);
  if (found == families_.end()) {
    CHECK(valid_name(name, true), "bad metric name {}", name);
    Family family{kind, std::string(help), {}, {}};
    for (const auto& [label, value] : labels) {
      CHECK(valid_name(label, false) && label != "le", "{}: bad label name {}", name, label);
      family.label_names.push_back(label);
    }
    found = families_.emplace(std::string(name), std::move(family)).first;
  }
  Family& family = found->second;
  bool same_labels =
      std::ranges::equal(labels, family.label_names, {}, [](const auto& l) { return l.first; });
  CHECK(family.kind == kind && same_labels, "{} registered twice, differently", name);

  std::string text = label_text(labels);
  if (family.series.size() >= series_per_name_max_ && !family.series.contains(text)) {
    for (auto& label : labels) label.second = "_other";
    text = label_text(labels);
  }
  return family.series[text];
}

Counter& MetricRegistry::counter(std::string_view name, std::string_view help, MetricLabels labels) {
  std::lock_guard lock(mutex_);
  auto& pointer = std::get<std::unique_ptr<Counter>>(slot(name, help, Kind::kCounter, std::move(labels)));
  if (pointer == nullptr) pointer = std::make_unique<Counter>();
  return *pointer;
}

Gauge& MetricRegistry::gauge(std::string_view name, std::string_view help, MetricLabels labels) {
  std::lock_guard lock(mutex_);
  Instrument& instrument = slot(name, help, Kind::kGauge, std::move(labels));
  if (!std::holds_alternative<std::unique_ptr<Gauge>>(instrument)) {
    CHECK(std::holds_alternative<std::unique_ptr<Counter>>(instrument), "{} is read by a function", name);
    instrument = std::make_unique<Gauge>();
  }
  return *std::get<std::unique_ptr<Gauge>>(instrument);
}

Histogram& MetricRegistry::histogram(std::string_view name, std::string_view help,
                                     std::span<const double> bounds, MetricLabels labels) {
  std::lock_guard lock(mutex_);
  Instrument& instrument = slot(name, help, Kind::kHistogram, std::move(labels));
  if (!std::holds_alternative<std::unique_ptr<Histogram>>(instrument)) {
    instrument = std::make_unique<Histogram>(name, bounds);
  }
  auto& histogram = *std::get<std::unique_ptr<Histogram>>(instrument);
  CHECK(std::ranges::equal(histogram.bounds(), bounds), "{} registered twice with other buckets", name);
  return histogram;
}

void MetricRegistry::gauge_from(std::string_view name, std::string_view help, std::function<double()> read,
                                MetricLabels labels) {
  std::lock_guard lock(mutex_);
  slot(name, help, Kind::kGauge, std::move(labels)) = std::move(read);
}

const char* MetricRegistry::kind_name(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
    case Kind::kHistogram:
      return "histogram";
  }
  return "untyped";
}

void MetricRegistry::print_series(std::string& out, const std::string& name, const std::string& labels,
                                  const Instrument& instrument) {
  auto line = [&](std::string_view suffix, std::string_view le, auto value) {
    append_sample(out, name, suffix, labels, le);
    if constexpr (std::is_same_v<decltype(value), double>) {
      append_number(out, value);
    } else {
      fmt::format_to(std::back_inserter(out), "{}", value);
    }
    out += '\n';
  };
  if (const auto* counter = std::get_if<std::unique_ptr<Counter>>(&instrument)) {
    line("", "", (*counter)->value());
  } else if (const auto* gauge = std::get_if<std::unique_ptr<Gauge>>(&instrument)) {
    line("", "", (*gauge)->value());
  } else if (const auto* read = std::get_if<std::function<double()>>(&instrument)) {
    line("", "", (*read)());
  } else {
    const Histogram& histogram = *std::get<std::unique_ptr<Histogram>>(instrument);
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      below += histogram.in_bucket(i);
      std::string le;
      append_number(le, histogram.bounds()[i]);
      line("_bucket", le, below);
    }
    below += histogram.in_bucket(histogram.bounds().size());
    line("_bucket", "+Inf", below);
    line("_sum", "", histogram.sum());
    line("_count", "", below);
  }
}

std::string MetricRegistry::to_prometheus_text() const {
  std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    out += "# HELP " + name + ' ';
    append_escaped(out, family.help, false);
    out += "\n# TYPE " + name + ' ' + kind_name(family.kind) + '\n';
    for (const auto& [labels, instrument] : family.series) print_series(out, name, labels, instrument);
  }
  return out;
}

}  // namespace varve
