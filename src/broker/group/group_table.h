// GroupTable: the groups that this broker owns, on the core executor.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "broker/group/group.h"
#include "metadata/client/metadata_client.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"

namespace varve::broker {

// What a commit or a deletion built on when it was looked at, or proposed.
struct Judged {
  uint64_t owners = 0;   // State::owners_version(); 0: it was not looked at yet
  uint64_t changes = 0;  // GroupTable's count for that group, with this one if it was proposed
};

// What was proposed, or why nothing was.
struct GroupProposals {
  GroupErrc error = GroupErrc::kNone;
  std::vector<runtime::Completion<metadata::ProposeResult>> waiting{};
  std::vector<uint32_t> first_offsets{};  // of commits: where in the request each begins
  Judged judged{};
};

struct DescribedMember {
  std::string id;
  metadata::MemberDetails details;
  std::string assignment;
};
struct DescribedGroup {
  GroupErrc error = GroupErrc::kNone;
  metadata::GroupPhase phase = metadata::GroupPhase::kEmpty;
  std::string protocol_type{};
  std::string protocol{};
  std::vector<DescribedMember> members{};
};

struct ListedGroup {
  std::string id;
  std::string protocol_type;
  metadata::GroupPhase phase = metadata::GroupPhase::kEmpty;
};

struct OffsetQuery {
  std::string group;
  std::optional<std::vector<PartitionHandle>> partitions;  // nullopt: all
};
struct FetchedOffset {
  Uuid topic;
  PartitionIndex partition;
  metadata::CommittedOffset committed;
};
struct FetchedOffsets {
  GroupErrc error = GroupErrc::kNone;
  std::vector<FetchedOffset> offsets{};
};

struct OffsetDeletion {
  std::string group;
  std::map<std::string, std::vector<PartitionHandle>> topics;
};
struct DeletionStart {
  GroupProposals proposals;
  // Topics whose offsets stay, because the group reads them.
  std::set<std::string> subscribed{};
};

// Groups with members are in memory soon after the broker owns them, or once they are asked for; others while somebody
// joins them. Memory
// runs ahead of the log: what changed in a group is proposed at once, one proposal of a group at a time, and its answers
// are held until what they come from is applied here. If it is not, the group is dropped, all who wait are told to look
// for the coordinator again, and the group is loaded anew from the state.
//
// The owner of a group is the one that the state names, from the entry on that made it so. Whom another broker took a
// group from drops it, and the other loads it: members go on in their generation. Who has many groups looks through them
// in several jobs, and nobody notices, since
// - a group that is not this broker's any more is refused by admit(), which asks the state;
// - whatever a group in memory answers or changes, by a request, its timer or the end of a save, first asks whether it has been this
//   broker's all the time since that was last seen, keep(), and drops it if not, though it be this broker's again: another
//   one may have changed it meanwhile, and told its members so;
// - a request to a group that is not in memory yet loads it, in find_usable();
// - what was proposed before the change and comes behind it is refused by apply (Entry's `owners`).
// So a walk only does early what a use would do; and another change begins it anew, so that its end finds all as they
// are to be.
//
// Core only, but for the constructor. Life: made by GroupCoordinator, start(), stop(), destroy.
class GroupTable {
 public:
  GroupTable(runtime::Runtime& runtime, metadata::MetadataClient& client, BrokerId broker, GroupConfig config,
             const Logger& logger, MetricRegistry& metrics, runtime::TaskScope& scope);

  // The broker serves: loads what it owns.
  void start();
  // Everybody who waits is told to look for another coordinator.
  void stop();
  void on_applied(const metadata::ApplyOutcome& outcome);

  // `is_certain`: a sync has ended since the request came. Without it an error that follows from what this broker has
  // applied is kUncertain, and nothing was done. Where there is no such parameter it is supposed.
  void join(JoinRequest request, runtime::Completion<JoinAnswer> done);
  void sync(SyncRequest& request, bool is_certain, runtime::Completion<SyncAnswer> done);
  void heartbeat(const HeartbeatRequest& request, bool is_certain, runtime::Completion<GroupErrc> done);
  void leave(const LeaveRequest& request, runtime::Completion<LeaveAnswer> done);
  // `judged`: of what was proposed of this request before, if apply found it stale. If another broker has owned the group
  // since, or something else was proposed for it, the request is not repeated: it would undo what came after it, and it is
  // the client's to say whether it still wants what it asked for.
  // Commits go into entries with everybody else's.
  void commit(std::shared_ptr<const CommitRequest> request, bool is_certain, Judged judged,
              runtime::Completion<GroupProposals> done);
  FetchedOffsets offsets(const OffsetQuery& query) const;
  void describe(const std::string& id, runtime::Completion<DescribedGroup> done);
  std::vector<ListedGroup> list() const;
  void remove(const std::string& id, Judged judged, runtime::Completion<GroupProposals> done);
  void delete_offsets(std::shared_ptr<const OffsetDeletion> request, Judged judged,
                      runtime::Completion<DeletionStart> done);

 private:
  // kNone: the answer may go out as it is.
  using Held = std::move_only_function<void(GroupErrc failure)>;
  struct Entry {
    Entry(Group group_in, uint64_t serial_in) : group(std::move(group_in)), serial(serial_in) {}

    Group group;
    uint64_t serial;  // of this life in memory
    uint64_t owners =
        0;  // State::owners_version() when it was last seen to have been this broker's all the time
    size_t bytes_counted = 0;
    uint64_t saved_revision = 0;
    uint64_t version = 0;             // of the group in state that memory builds on
    uint64_t version_saved_over = 0;  // by the newest save
    bool is_saving = false;
    // Dropped while a save was on its way: nothing is known of the group before that has ended.
    bool is_in_limbo = false;
    std::deque<std::pair<uint64_t, Held>> held;  // with the revision that each waits for
    MonotonicTime armed = MonotonicTime::never();

    bool is_clean() const { return saved_revision == group.revision(); }
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  // Through all groups, after brokers came or went: first those in memory, then those of the state.
  struct Walk {
    uint64_t number = 0;  // another one has begun if it is not the same any more
    bool is_on = false;
    bool is_loading = false;
    std::string from{};  // the next group
  };

  // kNone: this broker is the one to ask, and can tell.
  GroupErrc admit(std::string_view id) const;
  bool owns(std::string_view id) const;
  // Whether nobody else did since State::owners_version() was this.
  bool has_owned_since(std::string_view id, uint64_t version) const;
  void note_owners(bool is_reload);
  // nullptr: it is not in memory.
  Entry* find(std::string_view id);
  // Brings a group of the state into memory, or makes one; nullptr: there is no room.
  Entry* open(const std::string& id);
  Entry& load(const metadata::GroupView& view);
  // Whether it has been this broker's since that was last seen.
  bool is_kept(const Entry& entry) const;
  // False: it has not, and is in limbo or gone: `entry` is no more, and another one may stand under its id. To be asked
  // before every use of a group in memory.
  bool keep(Entry& entry);
  // Loads what this broker owns now and drops what it does not own any more, some at once and the rest in later jobs.
  void begin_walk();
  // Its jobs, one after the other: no coroutine lives on the core, and the scope that waits for this one ends before the
  // table does.
  runtime::Task<> walk(uint64_t number);
  // The next groups; false: there are no more.
  bool walk_on();
  void drop_next(size_t& left);
  void load_next(size_t& left);
  // After a reload, all in one job, as the reload was.
  void reconcile();
  // The group's entry; nullptr with kNone: it is not in memory. An error if nothing can be said of the group now, or of
  // what was asked of it when this was `judged`.
  Entry* find_usable(std::string_view id, GroupErrc& error, Judged judged = {});
  // For a commit or deletion that is proposed now.
  Judged note_change(std::string_view id);
  // As it is now, for what is looked at again later.
  Judged judge(std::string_view id);
  // Whether since it was `judged` the group has been another broker's, or something was proposed for it.
  bool is_overtaken(std::string_view id, Judged judged);
  uint64_t& changes_of(std::string_view id);
  // The same for a request of a member of one generation, with the error that the group has for it; nullptr also if that
  // is not certain yet.
  template <class Request>
  Entry* find_of_member(const Request& request, bool is_certain, GroupErrc& error);
  // After every use of the group: sends or holds its answers, saves what changed, sets its timer. The entry may be
  // gone afterwards.
  void settle(Entry& entry);
  void hold(Entry& entry, Held held);
  void send_held(Entry& entry);
  // Gives the answer when what the group is now is stored.
  template <class Answer>
  void answer_when_saved(Entry& entry, const runtime::Completion<Answer>& done, Answer answer);
  // Runs `then` on the core when nothing of the group is in memory only; with an error if it was dropped before.
  void when_clean(Entry& entry, Held then);
  void save(Entry& entry);
  runtime::Task<> await_save(std::string id, uint64_t serial, uint64_t revision,
                             runtime::Completion<metadata::ProposeResult> done);
  // `revision`: that the save has brought the state to; 0: a part of it.
  void saved(const std::string& id, uint64_t serial, uint64_t revision,
             const metadata::ProposeResult& result);
  // What is in memory is in doubt: everybody is told `error`, and the group is loaded anew if it is this broker's.
  void drop(Entry& entry, GroupErrc error);
  void erase(Entry& entry);
  void reload(const std::string& id);

  void count(Entry& entry);
  // What may be added to them.
  size_t bytes_room() const { return config_.bytes_max - std::min(bytes_, config_.bytes_max); }
  void arm(Entry& entry);
  void set_timer();
  void wake();
  void look_for_progress();

  runtime::Runtime& runtime_;
  metadata::MetadataClient& client_;
  const BrokerId broker_;
  const GroupConfig config_;
  const Logger logger_;
  runtime::TaskScope& scope_;
  Gauge& groups_gauge_;
  Counter& saves_;
  Counter& drops_;

  Random random_;  // for member ids
  bool is_running_ = false;
  bool is_stalled_ = false;  // no progress when it was last looked for
  uint64_t last_serial_ = 0;
  // The newest versions of who owns what, and who lived; a gap if the state was reloaded.
  std::deque<std::pair<uint64_t, std::set<BrokerId>>> owners_;
  // Commits and deletions proposed, by a part of the group's hash: two groups that share a number cost a repetition, no more.
  std::array<uint64_t, 1024> changes_{};
  Entries entries_;
  Walk walk_;
  size_t bytes_ = 0;                                           // of all groups, with their ids
  std::set<std::pair<MonotonicTime, std::string>> deadlines_;  // Entry::armed
  std::unique_ptr<runtime::Timer> timer_;
  MonotonicTime timer_at_ = MonotonicTime::never();
  MonotonicTime look_at_ = MonotonicTime::never();  // for progress
};

// "Empty", "PreparingRebalance", "CompletingRebalance", "Stable": Kafka's names.
std::string_view name_of(metadata::GroupPhase phase);

}  // namespace varve::broker
