#include "sim/service.h"

namespace varve::sim {

Service::Fate Service::draw_fate(const RequestFaults& faults, bool is_write) {
  uint64_t drawn = world_.random().below(1000);
  auto is_it = [&drawn](uint32_t per_mille) {
    bool hit = drawn < per_mille;
    drawn -= hit ? 0 : per_mille;
    return hit;
  };
  if (is_it(faults.throttled)) return Fate::kThrottled;
  if (is_it(faults.request_lost)) return Fate::kRequestLost;
  if (is_it(faults.reply_lost)) return Fate::kReplyLost;
  if (is_write && is_it(faults.lands_late)) return Fate::kLandsLate;
  if (is_it(faults.slow)) return Fate::kSlow;
  return Fate::kServed;
}

void Service::cut_off_if_awaited(const std::string& host, std::string_view fault_prefix) {
  if (cuts_to_come_.empty()) return;  // nearly always: no key is made for it
  auto cut = cuts_to_come_.find({host, std::string(fault_prefix)});
  if (cut == cuts_to_come_.end()) return;
  world_.happened("nemesis.service_lost_at_a_request");
  set_reachable(host, false);
  world_.after(cut->second, [this, host] { set_reachable(host, true); });
  cuts_to_come_.erase(cut);
}

Duration Service::draw_patience() {
  Duration high = world_.random().chance(1, 2) ? times_.one_way.high : times_.timeout_max;
  return Duration(world_.random().between(times_.one_way.low.count(), high.count()));
}

}  // namespace varve::sim
