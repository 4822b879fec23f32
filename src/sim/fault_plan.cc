#include "sim/fault_plan.h"

#include <array>
#include <span>

namespace varve::sim {
namespace {

constexpr std::array<uint32_t, 5> kRates = {2, 5, 15, 40, 100};
// Of what a run does only once or twice.
constexpr std::array<uint32_t, 3> kRareRates = {40, 100, 200};

class Swarm {
 public:
  explicit Swarm(Random& random) : random_(random) {}

  bool is_on() { return random_.chance(1, 2); }
  uint32_t per_mille(std::span<const uint32_t> rates = kRates) {
    return is_on() ? rates[random_.below(rates.size())] : 0;
  }
  Duration mean_time(Duration low, Duration high) {
    return is_on() ? Duration(random_.between(low.count(), high.count())) : Duration{0};
  }
  RequestFaults request(std::span<const uint32_t> rates = kRates) {
    return {.throttled = per_mille(rates),
            .request_lost = per_mille(rates),
            .reply_lost = per_mille(rates),
            .lands_late = per_mille(rates),
            .slow = per_mille(rates)};
  }

 private:
  Random& random_;
};

}  // namespace

FaultPlan FaultPlan::draw(Random& random) {
  Swarm swarm(random);
  FaultPlan plan;
  plan.store = {.put = swarm.request(),
                .get = swarm.request(),
                .head = swarm.request(),
                .list = swarm.request(),
                .remove = swarm.request(),
                .conflict = swarm.is_on() ? 500u : 0,
                .get_cut_short = swarm.per_mille(),
                .get_short = swarm.per_mille(),
                .get_corrupt = swarm.per_mille(),
                .list_small_page = swarm.is_on() ? 300u : 0,
                .remove_partial = swarm.per_mille()};
  plan.log = {.append = swarm.request(),
              .read = swarm.request(),
              .trim = swarm.request(kRareRates),
              .other = swarm.request(),
              .lease_lost = swarm.per_mille() / 4,
              .keep_alive_lost = swarm.per_mille(),
              .watch_missed = swarm.per_mille(),
              .watch_broken = swarm.per_mille(),
              .read_compacted = swarm.per_mille(),
              .trim_without_deletes = swarm.is_on() ? 300u : 0,
              .lag_max = swarm.mean_time(1ms, 2s)};
  plan.network = {.connect_refused = swarm.per_mille(),
                  .connect_silent = swarm.per_mille(),
                  .cut = swarm.per_mille() / 2,
                  .clog = swarm.per_mille() / 2};
  plan.files = {.read_fails = swarm.per_mille(),
                .write_fails = swarm.per_mille(),
                .sync_fails = swarm.per_mille(),
                .sync_folder_fails = swarm.per_mille()};
  plan.nemesis = {.kill = swarm.mean_time(5s, 60s),
                  .power_cut = swarm.mean_time(10s, 90s),
                  .power_cut_in_disk_call = swarm.mean_time(10s, 90s),
                  .kill_all = swarm.mean_time(60s, 300s),
                  .pause = swarm.mean_time(5s, 60s),
                  .isolate = swarm.mean_time(10s, 90s),
                  .partition = swarm.mean_time(5s, 60s),
                  .service_partition = swarm.mean_time(10s, 90s),
                  .service_down = swarm.mean_time(30s, 120s),
                  .service_full = swarm.mean_time(20s, 120s),
                  .cut_connection = swarm.mean_time(1s, 30s),
                  .clock_jump = swarm.mean_time(10s, 60s)};
  return plan;
}

}  // namespace varve::sim
