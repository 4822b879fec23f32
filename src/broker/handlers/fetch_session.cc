#include "broker/handlers/fetch_session.h"

#include <limits>

namespace varve::broker {
namespace {

using protocol::ErrorCode;

constexpr int32_t kNoSession = 0;
constexpr int32_t kFinalEpoch = -1;  // closes the session, opens none

int32_t epoch_after(int32_t epoch) { return epoch == std::numeric_limits<int32_t>::max() ? 1 : epoch + 1; }

struct KeyHash {
  size_t operator()(const FetchKey& key) const {
    size_t hash = key.topic.empty() ? std::hash<Uuid>()(key.topic_id) : std::hash<std::string>()(key.topic);
    return hash * 31 + static_cast<size_t>(key.partition.value());
  }
};

}  // namespace

// Fields but `id` are guarded by `mutex`, those of the cache's indexes by the cache's. Lock order: cache, session.
class FetchSession {
 public:
  FetchSession(int32_t session_id, bool by_topic_ids) : id(session_id), uses_topic_ids(by_topic_ids) {}

  struct Remembered {
    WantedPartition wanted;
    // As last told to the client; -1: not yet, or an error since.
    Offset high_watermark{-1};
    Offset log_start{-1};
  };

  void want(WantedPartition wanted) {
    auto found = by_key.find(wanted.key);
    if (found == by_key.end()) {
      partitions.push_back({std::move(wanted)});
      by_key.emplace(partitions.back().wanted.key, std::prev(partitions.end()));
    } else {
      found->second->wanted = std::move(wanted);
    }
  }

  void forget(const FetchKey& key) {
    auto found = by_key.find(key);
    if (found == by_key.end()) return;
    partitions.erase(found->second);
    by_key.erase(found);
  }

  // Whether the client has to be told; remembers that it was.
  bool note(const FetchKey& key, const FetchedSummary& summary) {
    auto found = by_key.find(key);
    if (found == by_key.end()) return true;
    Remembered& partition = *found->second;
    bool is_news = summary.has_records || summary.has_error ||
                   partition.high_watermark != summary.high_watermark ||
                   partition.log_start != summary.log_start;
    // After an error the partition is told again when it is well.
    partition.high_watermark = summary.has_error ? Offset(-1) : summary.high_watermark;
    partition.log_start = summary.log_start;
    // Who got records goes to the end, so that every partition gets its turn at the answer's bytes.
    if (summary.has_records) partitions.splice(partitions.end(), partitions, found->second);
    return is_news;
  }

  const int32_t id;
  const bool uses_topic_ids;
  std::mutex mutex;
  int32_t epoch = 1;
  std::list<Remembered> partitions;
  std::unordered_map<FetchKey, std::list<Remembered>::iterator, KeyHash> by_key;

  MonotonicTime last_use;
  size_t indexed_size = 0;
};

FetchSessionCache::FetchSessionCache(const Limits& limits, uint64_t random_seed)
    : sessions_max_(limits.fetch_sessions_max),
      partitions_max_(limits.fetch_session_partitions_max),
      random_(random_seed) {}

FetchSessionCache::~FetchSessionCache() = default;

FetchContext FetchSessionCache::begin(FetchSessionRequest request, MonotonicTime now) {
  FetchContext context;
  context.uses_topic_ids = request.uses_topic_ids;
  context.epoch = request.epoch;
  std::lock_guard lock(mutex_);
  if (request.epoch == 0 || request.epoch == kFinalEpoch) {
    if (request.session_id != kNoSession) remove(request.session_id);
    context.kind = request.epoch == 0 ? FetchContext::Kind::kFull : FetchContext::Kind::kSessionless;
    context.partitions = std::move(request.partitions);
    return context;
  }
  auto found = sessions_.find(request.session_id);
  if (found == sessions_.end()) {
    context.error = ErrorCode::kFetchSessionIdNotFound;
    return context;
  }
  std::shared_ptr<FetchSession> session = found->second;
  std::lock_guard session_lock(session->mutex);
  if (session->epoch != request.epoch) {
    context.error = ErrorCode::kInvalidFetchSessionEpoch;
    return context;
  }
  if (session->uses_topic_ids != request.uses_topic_ids) {
    context.error = ErrorCode::kFetchSessionTopicIdError;
    return context;
  }
  for (WantedPartition& wanted : request.partitions) session->want(std::move(wanted));
  for (const FetchKey& key : request.forgotten) session->forget(key);
  if (session->partitions.empty()) {
    remove(session->id);
    return context;
  }
  touch(*session, now);
  session->epoch = epoch_after(session->epoch);
  context.kind = FetchContext::Kind::kIncremental;
  context.partitions.reserve(session->partitions.size());
  for (const FetchSession::Remembered& partition : session->partitions) {
    context.partitions.push_back(partition.wanted);
  }
  context.session = std::move(session);
  return context;
}

FetchSessionAnswer FetchSessionCache::finish(const FetchContext& context,
                                             const std::vector<FetchedSummary>& summaries,
                                             MonotonicTime now) {
  FetchSessionAnswer answer;
  answer.error = context.error;
  answer.included.assign(context.partitions.size(), true);
  if (context.error != ErrorCode::kNone) return answer;
  switch (context.kind) {
    case FetchContext::Kind::kSessionless:
      break;
    case FetchContext::Kind::kFull:
      answer.session_id = create(context, summaries, now);
      break;
    case FetchContext::Kind::kIncremental: {
      FetchSession& session = *context.session;
      std::lock_guard lock(session.mutex);
      answer.session_id = session.id;
      // The client has sent the next request before it had this answer: it will not read it.
      if (session.epoch != epoch_after(context.epoch)) {
        answer.error = ErrorCode::kInvalidFetchSessionEpoch;
        answer.included.assign(context.partitions.size(), false);
        break;
      }
      for (size_t i = 0; i < summaries.size(); ++i) {
        answer.included[i] = session.note(context.partitions[i].key, summaries[i]);
      }
      break;
    }
  }
  return answer;
}

int32_t FetchSessionCache::create(const FetchContext& context, const std::vector<FetchedSummary>& summaries,
                                  MonotonicTime now) {
  std::lock_guard lock(mutex_);
  if (context.partitions.empty() || !make_room(context.partitions.size(), now)) return kNoSession;
  int32_t id = kNoSession;
  while (id == kNoSession || sessions_.contains(id)) id = static_cast<int32_t>(random_.next() & 0x7fffffff);
  auto session = std::make_shared<FetchSession>(id, context.uses_topic_ids);
  for (size_t i = 0; i < context.partitions.size(); ++i) {
    session->want(context.partitions[i]);
    session->note(context.partitions[i].key, summaries[i]);
  }
  sessions_.emplace(id, session);
  session->indexed_size = session->partitions.size();
  session->last_use = now;
  partitions_ += session->indexed_size;
  by_size_.emplace(session->indexed_size, id);
  by_last_use_.emplace(now, id);
  return id;
}

bool FetchSessionCache::make_room(size_t partitions, MonotonicTime now) {
  if (sessions_max_ == 0 || partitions > partitions_max_) return false;
  while (sessions_.size() >= sessions_max_ || partitions_ + partitions > partitions_max_) {
    const auto& [last_use, oldest] = *by_last_use_.begin();
    if (now - last_use > kStaleAfter) {
      remove(oldest);
      continue;
    }
    const auto& [size, smallest] = *by_size_.begin();
    if (size >= partitions) return false;
    remove(smallest);
  }
  return true;
}

void FetchSessionCache::remove(int32_t id) {
  auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  FetchSession& session = *found->second;
  by_last_use_.erase({session.last_use, id});
  by_size_.erase({session.indexed_size, id});
  partitions_ -= session.indexed_size;
  sessions_.erase(found);
}

void FetchSessionCache::touch(FetchSession& session, MonotonicTime now) {
  by_last_use_.erase({session.last_use, session.id});
  by_size_.erase({session.indexed_size, session.id});
  partitions_ -= session.indexed_size;
  session.last_use = now;
  session.indexed_size = session.partitions.size();
  partitions_ += session.indexed_size;
  by_last_use_.emplace(now, session.id);
  by_size_.emplace(session.indexed_size, session.id);
}

size_t FetchSessionCache::session_count() const {
  std::lock_guard lock(mutex_);
  return sessions_.size();
}

size_t FetchSessionCache::partition_count() const {
  std::lock_guard lock(mutex_);
  return partitions_;
}

}  // namespace varve::broker
