#include "sim/checkers/topic_book.h"

#include <algorithm>

namespace varve::sim {

TopicLife& TopicBook::told_of(const std::string& name, Uuid id, uint32_t partitions) {
  auto [at, is_new] = lives_.try_emplace(id);
  TopicLife& life = at->second;
  if (!is_new) {
    findings_.require(life.name == name, "topic {} was '{}' and is '{}'", id.to_string(), life.name, name);
    findings_.require(partitions <= life.partitions_asked,
                      "topic '{}' is told to have {} partitions, and at most {} were asked for", name,
                      partitions, life.partitions_asked);
    life.partitions = std::max(life.partitions, partitions);
    return life;
  }
  const TopicLife* before = find_certain(name);
  findings_.require(before == nullptr, "topic '{}' is {} though nobody deleted {}", name, id.to_string(),
                    before == nullptr ? std::string() : before->id.to_string());
  life.id = id;
  life.name = name;
  life.partitions = partitions;
  life.partitions_asked = partitions;
  life.stamps_append_time = stamped_names_.contains(name);
  life.known_since = world_.now();
  return life;
}

void TopicBook::ask_partitions(Uuid id, uint32_t partitions) {
  TopicLife& life = lives_.at(id);
  life.partitions_asked = std::max(life.partitions_asked, partitions);
}

uint32_t TopicBook::told_by(const std::string& host, Uuid id) const {
  auto found = told_by_.find({host, id});
  return found == told_by_.end() ? 0 : found->second;
}

void TopicBook::host_told(const std::string& host, Uuid id, uint32_t partitions, uint32_t told_before) {
  findings_.require(partitions >= told_before, "{} tells of {} partitions of topic {}, and told of {} before",
                    host, partitions, id.to_string(), told_before);
  uint32_t& told = told_by_[{host, id}];
  told = std::max(told, partitions);
}

void TopicBook::ask_deletion(Uuid id) {
  TopicLife& life = lives_.at(id);
  if (life.is_certain()) life.deletion_asked = world_.now();
}

void TopicBook::deleted(Uuid id) {
  TopicLife& life = lives_.at(id);
  life.deletion_acked = std::min(life.deletion_acked, world_.now());
}

void TopicBook::called_absent(const std::string& name, MonotonicTime asked_at, const std::string& who) {
  const TopicLife* life = find_certain(name);
  bool is_wrong = life != nullptr && life->known_since < asked_at;
  findings_.require(!is_wrong, "{} does not know topic '{}', which has existed since {} ms", who, name,
                    is_wrong ? life->known_since.since_zero() / 1ms : 0);
}

void TopicBook::called_absent(Uuid id, MonotonicTime asked_at, const std::string& who) {
  const TopicLife* life = find(id);
  bool is_wrong = life != nullptr && life->is_certain() && life->known_since < asked_at;
  findings_.require(!is_wrong, "{} does not know topic {} '{}', which has existed since {} ms", who,
                    id.to_string(), is_wrong ? life->name : "",
                    is_wrong ? life->known_since.since_zero() / 1ms : 0);
}

void TopicBook::called_present(Uuid id, MonotonicTime asked_at, const std::string& who) {
  const TopicLife* life = find(id);
  bool is_wrong = life != nullptr && life->deletion_acked < asked_at;
  findings_.require(!is_wrong, "{} tells of topic {}, whose deletion was acknowledged before", who,
                    id.to_string());
}

TopicLife* TopicBook::find(Uuid id) {
  auto found = lives_.find(id);
  return found == lives_.end() ? nullptr : &found->second;
}

TopicLife* TopicBook::find_certain(const std::string& name) {
  for (auto& [id, life] : lives_) {
    if (life.name == name && life.is_certain()) return &life;
  }
  return nullptr;
}

}  // namespace varve::sim
