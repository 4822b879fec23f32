// TopicBook: what is known for sure about topics, whatever a broker says.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "sim/scenario.h"
#include "sim/world.h"

namespace varve::sim {

// One life of a topic name. It surely exists from the moment when anybody was told of it until somebody asks for its
// deletion.
struct TopicLife {
  Uuid id;
  std::string name;
  // The most that anybody was told of, and that anybody asked for: the number never falls.
  uint32_t partitions = 0;
  uint32_t partitions_asked = 0;
  bool stamps_append_time = false;
  MonotonicTime known_since;
  MonotonicTime deletion_asked = MonotonicTime::never();
  MonotonicTime deletion_acked = MonotonicTime::never();

  bool is_certain() const { return deletion_asked == MonotonicTime::never(); }
};

// Life: for one run; belongs to the checkers, written by everything that talks to brokers.
class TopicBook {
 public:
  TopicBook(const World& world, Findings& findings) : world_(world), findings_(findings) {}

  // All lives of the name will stamp append times.
  void will_stamp(const std::string& name) { stamped_names_.insert(name); }
  // A broker told of the topic. A second topic of a name whose first surely exists is a finding, and so is a number of
  // partitions that nobody asked for.
  TopicLife& told_of(const std::string& name, Uuid id, uint32_t partitions);
  // From now on the topic may have so many.
  void ask_partitions(Uuid id, uint32_t partitions);
  // How many partitions the broker has told of; 0: it told nothing. It may lag behind others, but what it has told it
  // never takes back: `told_before` is what it had told when it was asked.
  uint32_t told_by(const std::string& host, Uuid id) const;
  void host_told(const std::string& host, Uuid id, uint32_t partitions, uint32_t told_before);
  void ask_deletion(Uuid id);
  // The deletion was acknowledged: whoever asks later must not be told of it.
  void deleted(Uuid id);

  // A broker said that there is no such topic, to a request sent at `asked_at`.
  void called_absent(const std::string& name, MonotonicTime asked_at, const std::string& who);
  void called_absent(Uuid id, MonotonicTime asked_at, const std::string& who);
  // A broker gave an answer that only an existing topic has.
  void called_present(Uuid id, MonotonicTime asked_at, const std::string& who);

  // nullptr: nobody was told.
  TopicLife* find(Uuid id);
  // The newest life of that name which nobody asked to delete.
  TopicLife* find_certain(const std::string& name);
  const std::map<Uuid, TopicLife>& lives() const { return lives_; }

 private:
  const World& world_;
  Findings& findings_;
  std::map<Uuid, TopicLife> lives_;
  std::set<std::string> stamped_names_;
  std::map<std::pair<std::string, Uuid>, uint32_t> told_by_;
};

}  // namespace varve::sim
