// Incarnations of brokers, live or fenced, and log time, which the live ones make.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "metadata/state/state.h"

namespace varve::metadata {

// Fenced incarnations are kept for ever, without endpoints: their nonces name objects, their last sequences tell
// the fate of entries (invariants 3 and 6). Owned by one state; not thread-safe.
class BrokerTable {
 public:
  const std::map<Incarnation, BrokerIncarnation>& all() const { return all_; }
  BrokerIncarnation* find(Incarnation incarnation);
  const BrokerIncarnation* find(Incarnation incarnation) const;
  std::optional<Incarnation> live(BrokerId broker) const;
  const std::map<BrokerId, Incarnation>& live() const { return live_; }
  std::optional<Incarnation> of_nonce(Nonce nonce) const;
  // Of what hashes to `hash`, among the live ones; nullopt if none lives.
  std::optional<BrokerId> owner_of(uint64_t hash) const;
  // How often one came or went; as long as it is the same, every hash has the owner that it has.
  uint64_t owners_version() const { return 2 * all_.size() - live_.size(); }
  // Whether every live incarnation knows the grammar of `level`.
  bool all_live_allow(FeatureLevel level) const;

  // The nonce must be new.
  void add(Incarnation incarnation, BrokerIncarnation broker);
  // False if it is fenced already.
  bool fence(Incarnation incarnation);
  // From a snapshot; false if number, nonce or live broker id are taken.
  bool restore(Incarnation incarnation, BrokerIncarnation broker);

  // The lower median of the live brokers' last times; INT64_MIN if none lives.
  int64_t median_time() const;

 private:
  std::map<Incarnation, BrokerIncarnation> all_;
  std::map<Nonce, Incarnation> by_nonce_;
  std::map<BrokerId, Incarnation> live_;
};

}  // namespace varve::metadata
