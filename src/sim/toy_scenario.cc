#include "sim/toy_scenario.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/crc32c.h"
#include "runtime/task_scope.h"
#include "sim/fault_plan.h"
#include "sim/nemesis.h"

namespace varve::sim {
namespace {

using metadata::EntryKey;
using metadata::LogErrc;
using object_store::StoreErrc;
using runtime::Task;

constexpr int kKeys = 12;
constexpr uint16_t kObserverPort = 7000;
constexpr Duration kFaultyTime = 90s;
constexpr Duration kTimeToFinish = 30min;

std::string key_of(int number) { return fmt::format("claims/{}", number); }

// What the nodes were told was done, and what they said. Belongs to nobody: it survives crashes.
struct Ledger {
  Findings findings;
  std::set<std::string> values_tried;
  std::map<std::string, std::string> won;                 // key -> value, as the winner believes
  std::set<std::string> entered;                          // lines acknowledged by the log
  std::map<std::string, std::vector<std::string>> noted;  // by host: lines acknowledged by its disk
  std::set<std::string> hosts_done;

  void win(const std::string& key, const std::string& value) {
    auto [at, is_new] = won.emplace(key, value);
    findings.require(is_new || at->second == value, "{} won by {} and by {}", key, at->second, value);
  }
};

// The program of a claiming node.
class Claimer {
 public:
  Claimer(Process& process, SimObjectStore& store, SimMetadataLog& log, Ledger& ledger,
          const PlantedBugs& bugs)
      : process_(process),
        random_(process.random_seed()),
        store_(store.client(process.node().host())),
        log_(log.client(process)),
        ledger_(ledger),
        bugs_(bugs) {
    scope_.spawn(process.io(0), "claimer", run());
  }

 private:
  const std::string& host() const { return process_.node().host(); }

  Task<> run() {
    co_await runtime::offload(process_, runtime::Lane::kDisk, [this] { check_notes(); });
    for (;;) {
      auto opened = co_await log_->open(Uuid{});
      if (opened) break;
      co_await runtime::sleep_for(100ms);
    }
    std::vector<int> order;
    for (int i = 0; i < kKeys; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    for (int number : order) co_await claim(key_of(number));
    ledger_.hosts_done.insert(host());
  }

  Task<> claim(std::string key) {
    std::string value = fmt::format("{}.{}.{}", host(), process_.life(), key);
    value += fmt::format("#{:08x}", crc32c(as_bytes(value)));
    ledger_.values_tried.insert(value);
    for (;;) {
      std::vector<Slice> body = {Slice::copy_of(as_bytes(value))};
      auto put =
          co_await runtime::with_deadline(process_.now() + 5s, store_->put_if_absent(key, std::move(body)));
      if (put) break;
      if (put.error().code == StoreErrc::kPreconditionFailed) {
        if (bugs_.ack_after_reject) break;
        // An earlier try of ours may have landed.
        std::string holder = co_await read_holder(key);
        if (holder == value) break;
        co_return;
      }
      co_await runtime::sleep_for(Duration(random_.between(1'000'000, 500'000'000)));
    }
    ledger_.win(key, value);
    std::string line = key + "=" + value;
    co_await enter_in_log(line);
    co_await runtime::offload(process_, runtime::Lane::kDisk, [this, line] { note(line); });
    co_await tell_observer(line);
    // Time for something to happen to us.
    co_await runtime::sleep_for(Duration(random_.between(0, 5'000'000'000)));
  }

  Task<std::string> read_holder(std::string key) {
    for (;;) {
      auto got = co_await runtime::with_deadline(process_.now() + 5s, store_->get(key, std::nullopt));
      if (got && got->size() > 9) {
        std::string text(as_text(got->view()));
        std::string content = text.substr(0, text.size() - 9);
        if (text.substr(content.size()) == fmt::format("#{:08x}", crc32c(as_bytes(content)))) co_return text;
      }
      co_await runtime::sleep_for(50ms);
    }
  }

  Task<> enter_in_log(std::string line) {
    for (;;) {
      if (!has_session_) {
        nonce_ = Nonce(random_.next());
        sequence_ = 0;
        auto begun = co_await log_->begin_session(nonce_);
        has_session_ = begun.has_value();
      }
      if (has_session_) {
        EntryKey key{nonce_, EntrySequence(sequence_ + 1)};
        auto position = co_await log_->append(key, LogPosition(), Slice::copy_of(as_bytes(line)));
        if (position) break;
        if (position.error().code == LogErrc::kSessionGone) has_session_ = false;
      }
      co_await runtime::sleep_for(50ms);
    }
    ++sequence_;
    ledger_.entered.insert(line);
  }

  // In a lane. After a failed sync the line is not noted, whatever a later sync says.
  void note(const std::string& line) {
    runtime::FileSystem& files = process_.file_system();
    auto file = files.open("notes", runtime::OpenMode::kCreate);
    if (!file) return;
    auto size = (*file)->size();
    std::string text = line + "\n";
    std::vector<ByteView> slices = {as_bytes(text)};
    bool is_durable = size && (*file)->write_at(*size, slices) && (*file)->sync() && files.sync_folder("");
    if (is_durable) ledger_.noted[host()].push_back(line);
  }

  // In a lane: what was noted in earlier lives must be there.
  void check_notes() {
    auto file = process_.file_system().open("notes", runtime::OpenMode::kRead);
    std::string text;
    if (file) {
      auto size = (*file)->size();
      if (!size) return;  // the power failed
      std::vector<uint8_t> bytes(*size);
      auto got = (*file)->read_at(0, bytes);
      if (!got) return;  // a read may fail; the next life looks again
      text = as_text(ByteView(bytes).first(*got));
    } else if (file.error().code != runtime::FileErrc::kNotFound) {
      return;
    }
    for (const std::string& line : ledger_.noted[host()]) {
      ledger_.findings.require(text.find(line + "\n") != std::string::npos, "{} lost its note {}", host(),
                               line);
    }
  }

  Task<> tell_observer(std::string line) {
    auto stream = co_await process_.network().connect({"observer", kObserverPort}, process_.now() + 2s);
    if (!stream) co_return;
    std::string text = line + "\n";
    std::vector<ByteView> slices = {as_bytes(text)};
    auto written = co_await (*stream)->write(slices);
    if (!written) co_return;
    std::vector<uint8_t> thanks(1);
    (void)co_await runtime::with_deadline(process_.now() + 2s, (*stream)->read_some(thanks));
  }

  Process& process_;
  Random random_;
  std::unique_ptr<object_store::ObjectStore> store_;
  std::unique_ptr<metadata::MetadataLog> log_;
  Ledger& ledger_;
  const PlantedBugs& bugs_;
  bool has_session_ = false;
  Nonce nonce_;
  uint64_t sequence_ = 0;
  runtime::TaskScope scope_;  // last: its frames use all of the above
};

// Takes lines and thanks for each; every line must be one that somebody sent.
Task<> observe_one(std::unique_ptr<runtime::Stream> stream, Ledger& ledger) {
  std::string text;
  std::vector<uint8_t> bytes(100);
  for (;;) {
    auto got = co_await stream->read_some(bytes);
    if (!got || *got == 0) co_return;
    text += as_text(ByteView(bytes).first(*got));
    size_t end = text.find('\n');
    if (end == std::string::npos) continue;
    std::string line = text.substr(0, end);
    ledger.findings.require(ledger.entered.contains(line), "the observer was told {}, which nobody said",
                            line);
    std::vector<ByteView> slices = {as_bytes("!")};
    (void)co_await stream->write(slices);
    text.erase(0, end + 1);
  }
}

Task<> observe(Process& process, runtime::TaskScope& scope, Ledger& ledger) {
  auto listener = process.network().listen(process.io(0), {"", kObserverPort});
  CHECK(listener, "{}", listener.error().message);
  for (;;) {
    auto stream = co_await (*listener)->accept(process.io(0));
    if (!stream) co_return;
    scope.spawn(process.io(0), "observation", observe_one(std::move(*stream), ledger));
  }
}

// The nodes with their programs; what the nemesis and the end of the run act on.
class ToyCluster {
 public:
  explicit ToyCluster(const RunOptions& options)
      : world_({.seed = options.seed, .time_max = kFaultyTime + kTimeToFinish, .trace = options.trace}),
        bugs_(options.bugs),
        plan_(FaultPlan::draw(world_.random())),
        observer_(world_, {.host = "observer", .io_count = 1}, &network_) {
    observations_.spawn(observer_.process().io(0), "observer",
                        observe(observer_.process(), observations_, ledger_));
    std::vector<NemesisVictim> victims;
    for (Machine& machine : machines_) {
      Duration offset(world_.random().between(Duration(-60s).count(), Duration(60s).count()));
      std::string host = fmt::format("node{}", &machine - machines_.data());
      machine.node =
          std::make_unique<Node>(world_, NodeOptions{.host = host, .clock_offset = offset}, &network_);
      start(machine);
      victims.push_back({.node = machine.node.get(),
                         .crash = [this, &machine](CrashKind kind) { crash(machine, kind); },
                         .boot =
                             [this, &machine] {
                               machine.node->boot();
                               start(machine);
                             }});
    }
    set_faults(plan_);
    nemesis_ = std::make_unique<Nemesis>(world_, plan_.nemesis, std::move(victims), network_,
                                         std::vector<Service*>{&store_, &log_});
  }

  Outcome run() {
    nemesis_->start();
    RunEnd end = world_.run_for(kFaultyTime);
    nemesis_->stop();
    set_faults(FaultPlan{});
    if (end == RunEnd::kDone) {
      end = world_.run_until([this] { return ledger_.hosts_done.size() == machines_.size(); });
    }
    check_end(end);
    Outcome outcome = make_outcome(world_, ledger_.findings, end);
    for (Machine& machine : machines_) {
      if (machine.node->is_up()) crash(machine, CrashKind::kKilled);
    }
    observer_.crash(CrashKind::kKilled);
    return outcome;
  }

 private:
  struct Machine {
    std::unique_ptr<Node> node;
    std::unique_ptr<Claimer> claimer;
  };

  void start(Machine& machine) {
    machine.claimer = std::make_unique<Claimer>(machine.node->process(), store_, log_, ledger_, bugs_);
  }
  void crash(Machine& machine, CrashKind kind) {
    ledger_.hosts_done.erase(machine.node->host());
    machine.node->crash(kind);
    machine.claimer.reset();
  }
  void set_faults(const FaultPlan& plan) {
    store_.set_faults(plan.store);
    log_.set_faults(plan.log);
    network_.set_faults(plan.network);
    for (Machine& machine : machines_) {
      if (machine.node) machine.node->disk().set_faults(plan.files);
    }
  }

  void check_end(RunEnd end) {
    Findings& findings = ledger_.findings;
    for (const auto& [key, value] : ledger_.won) {
      auto found = store_.objects().find(key);
      bool is_there = found != store_.objects().end() && as_text(found->second.bytes.view()) == value;
      findings.require(is_there, "{} was won by {}, and the store has something else", key, value);
    }
    for (const auto& [key, object] : store_.objects()) {
      std::string value(as_text(object.bytes.view()));
      findings.require(ledger_.values_tried.contains(value), "{} holds {}, which nobody wrote", key, value);
    }
    std::set<std::string> in_log;
    for (const auto& record : log_.records()) in_log.insert(std::string(as_text(record.bytes.view())));
    for (const std::string& line : ledger_.entered) {
      findings.require(in_log.contains(line), "{} was entered, and the log has it not", line);
    }
    if (end == RunEnd::kDone) {
      findings.require(store_.objects().size() == kKeys, "{} keys are claimed", store_.objects().size());
    }
  }

  World world_;
  PlantedBugs bugs_;
  Ledger ledger_;
  FaultPlan plan_;
  SimNetwork network_{world_};
  SimObjectStore store_{world_};
  SimMetadataLog log_{world_};
  Node observer_;
  runtime::TaskScope observations_;
  std::array<Machine, 3> machines_;
  std::unique_ptr<Nemesis> nemesis_;
};

}  // namespace

Outcome run_toy(const RunOptions& options) { return ToyCluster(options).run(); }

}  // namespace varve::sim
