// Fetch sessions (KIP-227): the broker remembers which partitions a consumer reads, so that a Fetch names only what
// changed and the answer only what is new.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/time.h"
#include "protocol/messages/error_code.h"

namespace varve::broker {

// A partition as the client names it: by id from Fetch 13 on (then `topic` is empty), before that by name.
struct FetchKey {
  Uuid topic_id;
  std::string topic;
  PartitionIndex partition;

  bool operator==(const FetchKey&) const = default;
};

struct WantedPartition {
  FetchKey key;
  Offset offset;
  int32_t bytes_max = 0;
  int32_t leader_epoch = -1;
  int32_t last_fetched_epoch = -1;
};

// The session part of a Fetch request.
struct FetchSessionRequest {
  int32_t session_id = 0;
  int32_t epoch = -1;
  bool uses_topic_ids = false;
  std::vector<WantedPartition> partitions;
  std::vector<FetchKey> forgotten;
};

// What finish() has to know of a partition's answer.
struct FetchedSummary {
  bool has_records = false;
  bool has_error = false;
  Offset high_watermark{-1};
  Offset log_start{-1};
};

class FetchSession;

// One Fetch's view of its session. A value of the handler.
struct FetchContext {
  // Not kNone: nothing is fetched, and this is the whole answer.
  protocol::ErrorCode error = protocol::ErrorCode::kNone;
  // What to fetch, in the order in which partitions share the answer's bytes.
  std::vector<WantedPartition> partitions;

  enum class Kind : uint8_t { kSessionless, kFull, kIncremental };
  Kind kind = Kind::kSessionless;
  bool uses_topic_ids = false;
  std::shared_ptr<FetchSession> session;  // kIncremental
  int32_t epoch = 0;                      // that the session had for this request
};

struct FetchSessionAnswer {
  protocol::ErrorCode error = protocol::ErrorCode::kNone;
  int32_t session_id = 0;
  // One for each of the context's partitions: whether it stands in the answer.
  std::vector<bool> included;
};

// Bounded by limits.fetch_sessions_max and fetch_session_partitions_max; a client that gets no session sends its
// whole list each time. A new session takes the place of the one unused for longest if that is stale, or of the
// smallest if that is smaller than the new one.
//
// Any thread. Owned by the broker.
class FetchSessionCache {
 public:
  // After this without use a session gives way to any other (Kafka: min.incremental.fetch.session.eviction.ms).
  static constexpr Duration kStaleAfter = 120s;

  FetchSessionCache(const Limits& limits, uint64_t random_seed);
  ~FetchSessionCache();

  FetchContext begin(FetchSessionRequest request, MonotonicTime now);
  // `summaries`: one for each of the context's partitions.
  FetchSessionAnswer finish(const FetchContext& context, const std::vector<FetchedSummary>& summaries,
                            MonotonicTime now);

  size_t session_count() const;
  size_t partition_count() const;

 private:
  int32_t create(const FetchContext& context, const std::vector<FetchedSummary>& summaries,
                 MonotonicTime now);
  // The following need the mutex.
  bool make_room(size_t partitions, MonotonicTime now);
  void remove(int32_t id);
  void touch(FetchSession& session, MonotonicTime now);

  const size_t sessions_max_;
  const size_t partitions_max_;
  mutable std::mutex mutex_;
  Random random_;
  std::map<int32_t, std::shared_ptr<FetchSession>> sessions_;
  std::set<std::pair<MonotonicTime, int32_t>> by_last_use_;
  std::set<std::pair<size_t, int32_t>> by_size_;
  size_t partitions_ = 0;
};

}  // namespace varve::broker
