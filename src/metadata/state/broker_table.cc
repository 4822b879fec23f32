#include "metadata/state/broker_table.h"

#include <algorithm>
#include <ranges>

#include "base/hash.h"

namespace varve::metadata {

BrokerIncarnation* BrokerTable::find(Incarnation incarnation) {
  auto at = all_.find(incarnation);
  return at == all_.end() ? nullptr : &at->second;
}

const BrokerIncarnation* BrokerTable::find(Incarnation incarnation) const {
  auto at = all_.find(incarnation);
  return at == all_.end() ? nullptr : &at->second;
}

std::optional<Incarnation> BrokerTable::live(BrokerId broker) const {
  auto at = live_.find(broker);
  return at == live_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<Incarnation> BrokerTable::of_nonce(Nonce nonce) const {
  auto at = by_nonce_.find(nonce);
  return at == by_nonce_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<BrokerId> BrokerTable::owner_of(uint64_t hash) const {
  auto ids = std::views::keys(live_);
  auto owner = rendezvous_owner(hash, ids);
  return owner == ids.end() ? std::nullopt : std::optional(*owner);
}

bool BrokerTable::all_live_allow(FeatureLevel level) const {
  return std::all_of(live_.begin(), live_.end(),
                     [&](const auto& live) { return all_.at(live.second).highest_level >= level; });
}

void BrokerTable::add(Incarnation incarnation, BrokerIncarnation broker) {
  CHECK(restore(incarnation, std::move(broker)), "incarnation {}", incarnation);
}

bool BrokerTable::fence(Incarnation incarnation) {
  BrokerIncarnation& broker = all_.at(incarnation);
  if (!broker.is_live) return false;
  broker.is_live = false;
  broker.endpoints = {};
  broker.rack = {};
  live_.erase(broker.broker);
  return true;
}

bool BrokerTable::restore(Incarnation incarnation, BrokerIncarnation broker) {
  if (!by_nonce_.try_emplace(broker.nonce, incarnation).second) return false;
  if (broker.is_live && !live_.try_emplace(broker.broker, incarnation).second) return false;
  return all_.try_emplace(incarnation, std::move(broker)).second;
}

int64_t BrokerTable::median_time() const {
  if (live_.empty()) return INT64_MIN;
  std::vector<int64_t> times;
  times.reserve(live_.size());
  for (const auto& [id, incarnation] : live_) times.push_back(all_.at(incarnation).last_time.value());
  auto median = times.begin() + static_cast<ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), median, times.end());
  return *median;
}

}  // namespace varve::metadata
