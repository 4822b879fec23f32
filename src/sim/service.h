// Service: what the simulated object store and metadata log have in common: requests that travel, get lost, land
// late, and replies that do not come back.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/completion.h"
#include "sim/delay.h"
#include "sim/world.h"

namespace varve::sim {

// Per mille of the requests of one kind. The rest are served.
struct RequestFaults {
  uint32_t throttled = 0;     // refused, nothing happened
  uint32_t request_lost = 0;  // nothing happened, and the caller is told nothing
  uint32_t reply_lost = 0;    // it happened, and the caller is told nothing
  uint32_t lands_late = 0;    // writes: the caller has given up when it happens
  uint32_t slow = 0;          // served, but seconds later
};

struct ServiceTimes {
  Delay one_way{.low = 100us, .high = 10ms, .slow_per_mille = 5, .slow_high = 300ms};
  Duration slow_max = 20s;
  // Until the caller of a lost request or reply is told so: a broken connection at once, a timeout later.
  Duration timeout_max = 15s;
  Duration late_max = 10min;
};

// One request. `effect` runs when it arrives and gives the reply; it must own all it uses.
template <class R>
struct ServiceRequest {
  std::string_view fault_prefix;  // a literal, as "store.put"; names the faults in World::happened()
  std::string host;               // of the caller
  RequestFaults faults;
  bool is_write = false;
  std::function<R()> effect;
  R no_answer;
  R throttled;
};

class Service {
 public:
  Service(World& world, ServiceTimes times) : world_(world), times_(times) {}

  // Cuts `host` off, or joins it again. Requests on their way are lost, replies too.
  void set_reachable(const std::string& host, bool is_reachable) {
    if (is_reachable) {
      cut_off_.erase(host);
    } else {
      cut_off_.insert(host);
    }
  }
  // Cuts `host` off for `span` when it next sends such a request ("log.trim"): the way to meet what it seldom does.
  void cut_off_at(const std::string& host, std::string_view fault_prefix, Duration span) {
    cuts_to_come_[{host, std::string(fault_prefix)}] = span;
  }
  // What was to be cut off at a request that has not come stays reachable.
  void forget_cuts() { cuts_to_come_.clear(); }
  // Full: nothing more fits, until there is room again. How much of that a caller may notice is the service's to say.
  virtual void set_full(bool is_full) = 0;
  // Down for everybody, or up again. What it holds stays.
  void set_down(bool is_down) { is_down_ = is_down; }
  bool can_reach(const std::string& host) const { return !is_down_ && !cut_off_.contains(host); }

 protected:
  ~Service() = default;

  template <class R>
  void submit(ServiceRequest<R> request, runtime::Completion<R> reply);

  World& world_;
  ServiceTimes times_;

 private:
  enum class Fate : uint8_t { kServed, kThrottled, kRequestLost, kReplyLost, kLandsLate, kSlow };

  void cut_off_if_awaited(const std::string& host, std::string_view fault_prefix);
  Fate draw_fate(const RequestFaults& faults, bool is_write);
  Duration draw_patience();
  // The request is at the door: its effect, and the way back.
  template <class R>
  void arrive(ServiceRequest<R> request, runtime::Completion<R> reply);
  template <class R>
  void answer_nothing(R no_answer, runtime::Completion<R> reply) {
    world_.after(draw_patience(), [reply, no_answer = std::move(no_answer)] { reply.set(no_answer); });
  }
  void happened(std::string_view prefix, std::string_view fault) {
    world_.happened(fmt::format("{}.{}", prefix, fault));
  }

  std::set<std::string> cut_off_;
  std::map<std::pair<std::string, std::string>, Duration> cuts_to_come_;  // by host and request
  bool is_down_ = false;
};

template <class R>
void Service::submit(ServiceRequest<R> request, runtime::Completion<R> reply) {
  Duration there = times_.one_way.draw(world_.random());
  Fate fate = draw_fate(request.faults, request.is_write);
  cut_off_if_awaited(request.host, request.fault_prefix);
  if (!can_reach(request.host)) {
    happened(request.fault_prefix, "unreachable");
    fate = Fate::kRequestLost;
  }
  switch (fate) {
    case Fate::kThrottled:
      happened(request.fault_prefix, "throttled");
      world_.after(there * 2, [reply, refusal = std::move(request.throttled)] { reply.set(refusal); });
      return;
    case Fate::kRequestLost:
      happened(request.fault_prefix, "request_lost");
      answer_nothing(std::move(request.no_answer), reply);
      return;
    case Fate::kReplyLost:
      happened(request.fault_prefix, "reply_lost");
      answer_nothing(std::move(request.no_answer), reply);
      world_.after(there, [effect = std::move(request.effect)] { effect(); });
      return;
    case Fate::kLandsLate: {
      happened(request.fault_prefix, "lands_late");
      Duration late(world_.random().between(0, times_.late_max.count()));
      answer_nothing(std::move(request.no_answer), reply);
      world_.after(late, [effect = std::move(request.effect)] { effect(); });
      return;
    }
    case Fate::kSlow:
      happened(request.fault_prefix, "slow");
      there += Duration(world_.random().between(0, times_.slow_max.count()));
      break;
    case Fate::kServed:
      break;
  }
  world_.after(there, [this, request = std::move(request), reply]() mutable {
    arrive(std::move(request), std::move(reply));
  });
}

template <class R>
void Service::arrive(ServiceRequest<R> request, runtime::Completion<R> reply) {
  if (!can_reach(request.host)) {
    happened(request.fault_prefix, "request_lost");
    answer_nothing(std::move(request.no_answer), reply);
    return;
  }
  R result = request.effect();
  Duration back = times_.one_way.draw(world_.random());
  auto deliver = [this, request = std::move(request), result = std::move(result), reply]() mutable {
    if (can_reach(request.host)) {
      reply.set(std::move(result));
    } else {
      happened(request.fault_prefix, "reply_lost");
      answer_nothing(std::move(request.no_answer), reply);
    }
  };
  world_.after(back, std::move(deliver));
}

}  // namespace varve::sim
