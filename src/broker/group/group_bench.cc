// What one job of the core takes where a group, or all of them, are looked through. The core answers nobody meanwhile.
#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "broker/group/group.h"
#include "metadata/state/state_testing.h"

namespace varve::broker {
namespace {

GroupConfig config() { return {.initial_rebalance_delay = 3s}; }

JoinRequest request(int64_t number, size_t bytes) {
  JoinRequest join;
  join.group = "g";
  join.fresh_id = "member-" + std::to_string(number);
  join.client_id = "client";
  join.client_host = "/127.0.0.1";
  join.session_timeout_ms = 45'000;
  join.rebalance_timeout_ms = 300'000;
  join.protocol_type = "consumer";
  join.protocols = {{"range", std::string(bytes, 'm')}};
  return join;
}

// The end of a join: the leader is told of every member and of what it brought.
void join_ends(benchmark::State& bench) {
  for (auto _ : bench) {
    bench.PauseTiming();
    size_t answered = 0;
    {
      MonotonicTime now;
      Group group("g", config());
      for (int64_t i = 0; i < bench.range(0); ++i) {
        group.join(request(i, static_cast<size_t>(bench.range(1))), [&](JoinAnswer) { ++answered; }, now);
      }
      bench.ResumeTiming();
      while (group.phase() == metadata::GroupPhase::kPreparingRebalance) {
        now = group.next_due();
        group.advance(now);
      }
      for (Group::Answer& answer : group.take_answers()) {
        auto& [reply, given] = std::get<0>(answer);
        reply(std::move(given));
      }
      bench.PauseTiming();
    }
    if (answered != static_cast<size_t>(bench.range(0))) bench.SkipWithError("an answer is missing");
    bench.ResumeTiming();
  }
}
BENCHMARK(join_ends)->Args({5'000, 1'024})->Args({5'000, 50 * 1'024})->Unit(benchmark::kMillisecond);

// A broker comes or goes: who owns each group now, and those that are this one's are brought into memory.
void owners_change(benchmark::State& bench) {
  metadata::StateDriver driver;
  for (int32_t id : {1, 2, 3}) driver.register_broker(id);
  metadata::GroupView view;
  view.protocol_type = "consumer";
  view.phase = metadata::GroupPhase::kStable;
  view.generation = 1;
  view.protocol = "range";
  view.leader = "member-0";
  for (int i = 0; i < 3; ++i) {
    metadata::MemberDetails details{.client_id = "client", .client_host = "/127.0.0.1"};
    details.session_timeout_ms = 45'000;
    details.protocols = {{"range", std::string(100, 'm')}};
    view.members["member-" + std::to_string(i)] = {std::move(details), std::string(100, 'a')};
  }
  std::vector<std::string> ids;
  for (int64_t i = 0; i < bench.range(0); ++i) ids.push_back("group-" + std::to_string(i));
  for (auto _ : bench) {
    std::map<std::string, Group, std::less<>> groups;
    for (const std::string& id : ids) {
      if (driver.state.group_owner(id) != BrokerId(1)) continue;
      view.id = id;
      groups.try_emplace(id, view, config(), MonotonicTime());
    }
    bench.PauseTiming();
    bench.counters["loaded"] = static_cast<double>(groups.size());
    groups.clear();
    bench.ResumeTiming();
  }
}
BENCHMARK(owners_change)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace varve::broker
