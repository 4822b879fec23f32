#include "metadata/state/state.h"

#include "base/hash.h"
#include "metadata/state/apply.h"
#include "metadata/state/state_impl.h"

namespace varve::metadata {

PartitionView StateData::view_of(PartitionHandle handle, const Partition& partition) const {
  // No transaction is ever open at this feature level: everything is stable.
  Offset high_watermark(partition.high_watermark);
  return {.handle = handle,
          .topic = partition.topic->view->id,
          .index = partition.index,
          .log_start = Offset(partition.log_start),
          .high_watermark = high_watermark,
          .last_stable = high_watermark};
}

State::State(PlantedBugs bugs) : impl_(std::make_unique<Impl>()) { impl_->bugs = bugs; }
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

void State::set_local_broker(BrokerId broker) { impl_->local_broker = broker; }

ApplyOutcome State::apply(LogPosition position, ByteView entry) {
  return Applier(*impl_).apply(position, entry);
}

LogPosition State::position() const { return impl_->position; }
FeatureLevel State::feature_level() const { return impl_->feature_level; }
int64_t State::log_time() const { return impl_->log_time; }
FenceEpoch State::fence_epoch() const { return impl_->fence_epoch; }
const SetLimits& State::limits() const { return impl_->limits; }

const std::map<Incarnation, BrokerIncarnation>& State::incarnations() const { return impl_->brokers.all(); }
std::optional<Incarnation> State::live_incarnation(BrokerId broker) const {
  return impl_->brokers.live(broker);
}
const std::map<BrokerId, Incarnation>& State::live_brokers() const { return impl_->brokers.live(); }
std::optional<Incarnation> State::incarnation_of(Nonce nonce) const { return impl_->brokers.of_nonce(nonce); }

const std::map<Uuid, TopicView>& State::topics() const { return impl_->topics.by_id(); }
const TopicView* State::find_topic(std::string_view name) const { return impl_->topics.find(name); }
const TopicView* State::find_topic(Uuid id) const { return impl_->topics.find(id); }
uint64_t State::image_version() const { return impl_->image_version; }

const std::map<std::string, GroupView, std::less<>>& State::groups() const { return impl_->groups.all(); }
const GroupView* State::find_group(std::string_view id) const { return impl_->groups.find(id); }
std::optional<BrokerId> State::group_owner(std::string_view id) const {
  return impl_->brokers.owner_of(hash64(id));
}
uint64_t State::owners_version() const { return impl_->brokers.owners_version(); }
const SetGroupLimits& State::group_limits() const { return impl_->group_limits; }
ExpirySearch State::search_idle_offset(std::string_view from, size_t groups_max, int64_t cut_off) const {
  return impl_->groups.search_idle_offset(from, groups_max, {cut_off, impl_->log_time});
}

bool State::knows_object(ObjectId object) const { return impl_->objects.find(object) != nullptr; }

std::optional<FenceEpoch> State::object_epoch(ObjectId object) const {
  const Object* known = impl_->objects.find(object);
  return known == nullptr ? std::nullopt : std::optional(known->epoch);
}

std::vector<PendingDeletion> State::deletable(size_t max) const {
  std::vector<PendingDeletion> result;
  // A snapshot taken before the dereference would bring the reference back.
  LogPosition oldest_snapshot(UINT64_MAX);
  if (!impl_->snapshots.empty()) oldest_snapshot = impl_->snapshots.front().position;
  for (const auto& [at, object] : impl_->objects.pending()) {
    if (result.size() >= max || at.first > oldest_snapshot) break;
    bool is_fenced = object->epoch < impl_->fence_epoch || impl_->bugs.delete_without_fence;
    bool is_read_out =
        !object->needs_grace || impl_->log_time - object->dereferenced.log_time >= kReadGraceMs;
    if (!is_fenced || !is_read_out) continue;
    result.push_back({.object = object->id,
                      .epoch = object->epoch,
                      .dereferenced_at = object->dereferenced.position,
                      .dereferenced_time = object->dereferenced.log_time,
                      .needs_grace = object->needs_grace});
  }
  return result;
}

size_t State::pending_deletions() const { return impl_->objects.pending().size(); }

const std::vector<RetainedSnapshot>& State::snapshots() const { return impl_->snapshots; }

LogPosition State::trimmable() const {
  return impl_->snapshots.size() < kSnapshotsRetained ? LogPosition() : impl_->snapshots.front().position;
}

const std::map<std::string, uint64_t>& State::refusal_counts() const { return impl_->refusals.by_name(); }

}  // namespace varve::metadata
