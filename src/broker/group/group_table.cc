#include "broker/group/group_table.h"

#include <algorithm>
#include <ranges>

#include "base/hash.h"
#include "broker/group/group_save.h"
#include "metadata/log/metadata_log.h"

namespace varve::broker {
namespace {

using metadata::GroupPhase;

// How often it is looked whether the broker still hears of the log.
constexpr Duration kLookInterval = 1s;
// Of details and assignments in one save; the rest of an entry is for ids, and for one large member.
constexpr size_t kSaveBytesMax = 128 * 1024;
// Of how many comings and goings of brokers it is known whose groups were whose. A proposal seldom outlasts one. Where
// more come before a walk has got to a group, that is dropped and loaded anew: who waits has to ask again.
constexpr size_t kOwnersKept = 16;

// A group in memory has its id in three places.
size_t bytes_for_id(std::string_view id) { return Group::kBytesEach + 3 * id.size(); }

}  // namespace

std::string_view name_of(GroupPhase phase) {
  switch (phase) {
    case GroupPhase::kEmpty:
      return "Empty";
    case GroupPhase::kPreparingRebalance:
      return "PreparingRebalance";
    case GroupPhase::kCompletingRebalance:
      return "CompletingRebalance";
    case GroupPhase::kStable:
      return "Stable";
  }
  return "Unknown";
}

GroupTable::GroupTable(runtime::Runtime& runtime, metadata::MetadataClient& client, BrokerId broker,
                       GroupConfig config, const Logger& logger, MetricRegistry& metrics,
                       runtime::TaskScope& scope)
    : runtime_(runtime),
      client_(client),
      broker_(broker),
      config_(config),
      logger_(logger),
      scope_(scope),
      groups_gauge_(metrics.gauge("varve_groups", "Consumer groups in this broker's memory")),
      saves_(metrics.counter("varve_group_saves_total", "Changes of consumer groups proposed to the log")),
      drops_(metrics.counter("varve_group_drops_total",
                             "Consumer groups that were loaded anew because a change was not stored")),
      random_(runtime.random_seed()) {}

void GroupTable::start() {
  is_running_ = true;
  note_owners(true);
  begin_walk();
  look_at_ = runtime_.now() + kLookInterval;
  set_timer();
}

void GroupTable::stop() {
  is_running_ = false;
  timer_.reset();
  while (!entries_.empty()) {
    Entry& entry = entries_.begin()->second;
    entry.is_saving = false;
    drop(entry, GroupErrc::kNotCoordinator);
  }
}

bool GroupTable::owns(std::string_view id) const {
  return client_.state().group_owner(id) == std::optional<BrokerId>(broker_);
}

GroupErrc GroupTable::admit(std::string_view id) const {
  if (!is_running_ || !owns(id)) return GroupErrc::kNotCoordinator;
  return client_.has_progress() ? GroupErrc::kNone : GroupErrc::kCoordinatorNotAvailable;
}

GroupTable::Entry* GroupTable::find(std::string_view id) {
  auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

GroupTable::Entry& GroupTable::load(const metadata::GroupView& view) {
  std::optional<metadata::GroupView> forgotten;
  if (config_.bugs.new_owner_forgets_members) {
    forgotten = view;
    forgotten->members.clear();
    forgotten->phase = GroupPhase::kEmpty;
  }
  Group group(forgotten ? *forgotten : view, config_, runtime_.now());
  auto [at, is_new] = entries_.try_emplace(view.id, std::move(group), ++last_serial_);
  CHECK(is_new, "group {} is in memory already", view.id);
  at->second.version = view.version;
  at->second.owners = client_.state().owners_version();
  count(at->second);
  return at->second;
}

GroupTable::Entry* GroupTable::open(const std::string& id) {
  if (Entry* known = find(id)) return known;
  if (entries_.size() >= config_.groups_max) return nullptr;
  if (const metadata::GroupView* view = client_.state().find_group(id)) return &load(*view);
  if (bytes_for_id(id) > bytes_room()) return nullptr;
  auto [at, is_new] = entries_.try_emplace(id, Group(id, config_), ++last_serial_);
  at->second.owners = client_.state().owners_version();
  count(at->second);
  return &at->second;
}

void GroupTable::on_applied(const metadata::ApplyOutcome& outcome) {
  if (!is_running_ || !(outcome.has_broker_change || outcome.is_reload)) return;
  note_owners(outcome.is_reload);
  if (outcome.is_reload) {
    reconcile();
  } else {
    begin_walk();
  }
}

void GroupTable::note_owners(bool is_reload) {
  if (is_reload) owners_.clear();
  auto alive = std::views::keys(client_.state().live_brokers());
  owners_.emplace_back(client_.state().owners_version(), std::set<BrokerId>(alive.begin(), alive.end()));
  if (owners_.size() > kOwnersKept) owners_.pop_front();
}

bool GroupTable::has_owned_since(std::string_view id, uint64_t version) const {
  auto since = std::ranges::find(owners_, version, [](const auto& one) { return one.first; });
  uint64_t hash = hash64(id);
  return since != owners_.end() && std::all_of(since, owners_.end(), [&](const auto& one) {
           auto owner = rendezvous_owner(hash, one.second);
           return owner != one.second.end() && *owner == broker_;
         });
}

bool GroupTable::is_kept(const Entry& entry) const {
  return entry.owners == client_.state().owners_version() || has_owned_since(entry.group.id(), entry.owners);
}

bool GroupTable::keep(Entry& entry) {
  if (is_kept(entry)) {
    entry.owners = client_.state().owners_version();
    return true;
  }
  if (!entry.is_in_limbo) drop(entry, GroupErrc::kNotCoordinator);
  return false;
}

void GroupTable::begin_walk() {
  walk_ = {.number = walk_.number + 1, .is_on = true};
  if (walk_on()) scope_.spawn(runtime_.io(0), "look through groups", walk(walk_.number));
}

runtime::Task<> GroupTable::walk(uint64_t number) {
  for (bool goes_on = true; goes_on;) {
    goes_on = co_await runtime::call(
        runtime_.core(), [this, number] { return is_running_ && walk_.number == number && walk_on(); });
  }
}

bool GroupTable::walk_on() {
  size_t left = config_.groups_per_job;
  if (!walk_.is_loading) drop_next(left);
  if (walk_.is_loading) load_next(left);
  groups_gauge_.set(static_cast<double>(entries_.size()));
  return walk_.is_on;
}

void GroupTable::drop_next(size_t& left) {
  auto at = entries_.lower_bound(walk_.from);
  // To drop a group may erase it, and load it anew.
  for (; at != entries_.end() && left > 0; --left) keep((at++)->second);
  walk_.is_loading = at == entries_.end();
  walk_.from = walk_.is_loading ? "" : at->first;
}

void GroupTable::load_next(size_t& left) {
  const auto& groups = client_.state().groups();
  auto at = groups.lower_bound(walk_.from);
  for (; at != groups.end() && left > 0; --left, ++at) {
    const auto& [id, view] = *at;
    if (!view.members.empty() && !entries_.contains(id) && owns(id)) arm(load(view));
  }
  walk_.is_on = at != groups.end();
  walk_.from = walk_.is_on ? at->first : "";
}

void GroupTable::reconcile() {
  walk_ = {.number = walk_.number + 1};
  const metadata::State& state = client_.state();
  std::vector<std::string> gone;
  for (auto& [id, entry] : entries_) {
    const metadata::GroupView* view = state.find_group(id);
    // Memory holds only if it is what the state has, and if no broker came or went since: nobody knows any more whose it
    // was meanwhile.
    bool is_stale = !entry.is_in_limbo && (entry.is_saving || entry.owners != state.owners_version() ||
                                           entry.version != (view == nullptr ? 0 : view->version));
    if (is_stale || !owns(id)) gone.push_back(id);
  }
  for (const std::string& id : gone) {
    Entry* entry = find(id);
    if (entry != nullptr && !entry->is_in_limbo) drop(*entry, GroupErrc::kNotCoordinator);
  }
  for (const auto& [id, view] : state.groups()) {
    if (view.members.empty() || entries_.contains(id) || !owns(id)) continue;
    arm(load(view));
  }
  groups_gauge_.set(static_cast<double>(entries_.size()));
}

void GroupTable::settle(Entry& entry) {
  count(entry);
  for (Group::Answer& answer : entry.group.take_answers()) {
    if (auto* early = std::get_if<std::pair<SyncReply, SyncAnswer>>(&answer);
        early != nullptr && config_.bugs.sync_reply_before_apply) {
      early->first(std::move(early->second));
      continue;
    }
    std::visit(
        [&](auto& one) {
          hold(entry,
               [reply = std::move(one.first), given = std::move(one.second)](GroupErrc failure) mutable {
                 if (failure != GroupErrc::kNone)
                   given = std::remove_reference_t<decltype(given)>::of(failure);
                 reply(std::move(given));
               });
        },
        answer);
  }
  if (!entry.is_clean() && !entry.is_saving) {
    save(entry);
    return;
  }
  send_held(entry);
  if (entry.group.is_idle() && entry.is_clean() && !entry.is_saving) {
    erase(entry);
  } else {
    arm(entry);
  }
  groups_gauge_.set(static_cast<double>(entries_.size()));
}

void GroupTable::hold(Entry& entry, Held held) {
  entry.held.emplace_back(entry.group.revision(), std::move(held));
}

void GroupTable::send_held(Entry& entry) {
  while (!entry.held.empty() && entry.held.front().first <= entry.saved_revision) {
    Held held = std::move(entry.held.front().second);
    entry.held.pop_front();
    held(GroupErrc::kNone);
  }
}

void GroupTable::save(Entry& entry) {
  const std::string& id = entry.group.id();
  const metadata::GroupView* view = client_.state().find_group(id);
  // Memory of a group that had members builds on what it saved last. One without any is a new one, whatever became of
  // its name meanwhile.
  bool is_foreign = view != nullptr && !view->members.empty() && view->version != entry.version;
  if (is_foreign) return drop(entry, GroupErrc::kNotCoordinator);
  SaveStep step = next_save(entry.group, view, kSaveBytesMax);
  step.command.owners = client_.state().owners_version();
  entry.version_saved_over = step.command.version;
  std::vector<metadata::Command> commands;
  commands.emplace_back(std::move(step.command));
  if (metadata::encoded_size_bound(commands.front()) + metadata::kEntryFrameBytesMax >
      metadata::kMaxEntryBytes) {
    logger_.warn("a consumer group is too large for the metadata log", {{"group", id}});
    return drop(entry, GroupErrc::kUnknownServerError);
  }
  entry.is_saving = true;
  saves_.add();
  runtime::Completion<metadata::ProposeResult> done;
  uint64_t revision = step.is_complete ? entry.group.revision() : 0;
  scope_.spawn(runtime_.io(entry.serial % runtime_.io_count()), "save a group",
               await_save(id, entry.serial, revision, done));
  client_.propose(std::move(commands), done);
  arm(entry);
}

runtime::Task<> GroupTable::await_save(std::string id, uint64_t serial, uint64_t revision,
                                       runtime::Completion<metadata::ProposeResult> done) {
  metadata::ProposeResult stopped = fail(metadata::ProposeErrc::kStopping, "the groups are being closed");
  metadata::ProposeResult result =
      co_await runtime::wait_until(done, MonotonicTime::never(), std::move(stopped));
  co_await runtime::call(runtime_.core(),
                         [this, &id, serial, revision, &result] { saved(id, serial, revision, result); });
}

void GroupTable::saved(const std::string& id, uint64_t serial, uint64_t revision,
                       const metadata::ProposeResult& result) {
  Entry* entry = find(id);
  if (entry == nullptr || entry->serial != serial) return;
  entry->is_saving = false;
  if (entry->is_in_limbo) {
    erase(*entry);
    reload(id);
    return;
  }
  if (!keep(*entry)) return;
  bool is_stored = result && result->front().verdict == metadata::CommandVerdict::kDone;
  // A broker came or went, and the group stayed this one's and as it was.
  bool is_only_late = result && result->front().verdict == metadata::CommandVerdict::kStaleGroup &&
                      result->front().group_version == entry->version_saved_over;
  if (is_only_late) return settle(*entry);
  if (!is_stored) drops_.add();
  if (!result) {
    bool may_ask_again = result.error().code == metadata::ProposeErrc::kFull;
    return drop(*entry, may_ask_again ? GroupErrc::kCoordinatorNotAvailable : GroupErrc::kNotCoordinator);
  }
  const metadata::CommandOutcome& outcome = result->front();
  if (!is_stored) {
    bool is_full = outcome.verdict == metadata::CommandVerdict::kOverLimit;
    return drop(*entry, is_full ? GroupErrc::kCoordinatorNotAvailable : GroupErrc::kNotCoordinator);
  }
  entry->version = outcome.group_version;
  entry->saved_revision = std::max(entry->saved_revision, revision);
  send_held(*entry);
  settle(*entry);
}

void GroupTable::drop(Entry& entry, GroupErrc error) {
  std::string id = entry.group.id();
  entry.group.fail_waiting(error);
  for (Group::Answer& answer : entry.group.take_answers()) {
    std::visit([&](auto& one) { one.first(std::move(one.second)); }, answer);
  }
  for (auto& [revision, held] : std::exchange(entry.held, {})) held(error);
  if (entry.is_saving) {
    deadlines_.erase({entry.armed, id});
    entry.armed = MonotonicTime::never();
    entry.is_in_limbo = true;
    return;
  }
  erase(entry);
  reload(id);
}

void GroupTable::erase(Entry& entry) {
  deadlines_.erase({entry.armed, entry.group.id()});
  bytes_ -= entry.bytes_counted;
  entries_.erase(entries_.find(entry.group.id()));
  groups_gauge_.set(static_cast<double>(entries_.size()));
}

void GroupTable::reload(const std::string& id) {
  if (!is_running_ || !owns(id)) return;
  const metadata::GroupView* view = client_.state().find_group(id);
  if (view != nullptr && !view->members.empty()) arm(load(*view));
}

void GroupTable::when_clean(Entry& entry, Held then) {
  hold(entry, [this, then = std::move(then)](GroupErrc failure) mutable {
    runtime_.core().post([then = std::move(then), failure]() mutable { then(failure); });
  });
  send_held(entry);
}

void GroupTable::count(Entry& entry) {
  size_t bytes = entry.group.bytes() + bytes_for_id(entry.group.id());
  bytes_ += bytes - entry.bytes_counted;
  entry.bytes_counted = bytes;
}

void GroupTable::arm(Entry& entry) {
  MonotonicTime due = entry.group.next_due();
  if (due >= entry.armed) return;
  deadlines_.erase({entry.armed, entry.group.id()});
  entry.armed = due;
  deadlines_.insert({due, entry.group.id()});
  set_timer();
}

void GroupTable::set_timer() {
  if (!is_running_) return;
  MonotonicTime due = look_at_;
  if (!deadlines_.empty()) due = std::min(due, deadlines_.begin()->first);
  if (timer_ != nullptr && due == timer_at_) return;
  timer_at_ = due;
  timer_ = runtime_.core().start_timer(due, [this] { wake(); });
}

void GroupTable::wake() {
  MonotonicTime now = runtime_.now();
  look_for_progress();
  // Those that are left are due at once, in another job.
  for (size_t left = config_.groups_per_job;
       left > 0 && !is_stalled_ && !deadlines_.empty() && deadlines_.begin()->first <= now; --left) {
    Entry* entry = find(deadlines_.begin()->second);
    deadlines_.erase(deadlines_.begin());
    CHECK(entry != nullptr, "a deadline of no group");
    entry->armed = MonotonicTime::never();
    if (!keep(*entry)) continue;
    entry->group.advance(now);
    settle(*entry);
  }
  timer_at_ = MonotonicTime::never();
  // While nothing is heard of the log, no deadline counts.
  if (is_stalled_) {
    timer_ = runtime_.core().start_timer(look_at_, [this] { wake(); });
  } else {
    timer_ = nullptr;
    set_timer();
  }
}

void GroupTable::look_for_progress() {
  MonotonicTime now = runtime_.now();
  if (now >= look_at_) look_at_ = now + kLookInterval;
  bool was_stalled = std::exchange(is_stalled_, !client_.has_progress());
  if (is_stalled_ && !was_stalled) {
    // What is on its way to the log stays so; its clients look again meanwhile.
    for (auto& [id, entry] : entries_) {
      for (auto& [revision, held] : std::exchange(entry.held, {})) held(GroupErrc::kCoordinatorNotAvailable);
    }
  }
  if (!is_stalled_ && was_stalled) {
    for (auto& [id, entry] : entries_) {
      if (entry.is_in_limbo) continue;
      entry.group.restart_deadlines(now);
      deadlines_.erase({entry.armed, id});
      entry.armed = MonotonicTime::never();
      arm(entry);
    }
  }
}

}  // namespace varve::broker
