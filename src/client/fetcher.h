// Fetcher: reads partitions from where they were put, and keeps what has come until it is taken.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/cluster.h"
#include "protocol/messages/fetch.h"
#include "protocol/records/payload_reader.h"

namespace varve::client {

struct FetchOptions {
  Duration wait_max = 500ms;  // at the broker, for min_bytes
  int32_t min_bytes = 1;
  int32_t bytes_max = 50 << 20;
  int32_t partition_bytes_max = 1 << 20;
  size_t decompressed_bytes_max = 128 * kMiB;  // of one batch
};

struct ConsumedRecord {
  TopicPartition at;
  Offset offset;
  WallTime timestamp;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
};

enum class OffsetReset : uint8_t { kEarliest, kLatest, kNone };

// At most one fetch per broker is under way, and none for a partition of which something is not taken yet.
// Life: beside its cluster, same executor; close() and await it, then destroy.
class Fetcher {
 public:
  Fetcher(Cluster& cluster, FetchOptions options);
  runtime::Task<> close();

  // Reads from `offset` of the topic's present life on; drops what was kept of the partition.
  void put(const TopicPartition& at, Uuid topic, Offset offset);
  void remove(const TopicPartition& at) { places_.erase(at); }
  // The offset after the last record taken; nullopt: never put.
  std::optional<Offset> position(const TopicPartition& at) const;

  // Begins what can be begun.
  runtime::Task<> advance();
  // At most `records_max` of what has come, in the order of each partition.
  std::vector<ConsumedRecord> take(size_t records_max);
  // Until something has come, something is amiss, or wake().
  runtime::Task<> wait(MonotonicTime until);
  void wake();

  // Partitions that cannot be read from where they are, removed by asking.
  struct Astray {
    std::set<TopicPartition> out_of_range;
    std::set<TopicPartition> born_again;  // the topic is another than the one they were put in
  };
  Astray take_astray() { return std::exchange(astray_, {}); }
  // An error that does not pass, once.
  std::optional<ClientError> take_problem() { return std::exchange(problem_, std::nullopt); }

  // Where a partition begins or ends now.
  runtime::Task<ClientResult<Offset>> find_end(TopicPartition at, OffsetReset end);

 private:
  struct Place {
    Uuid topic;
    uint64_t stamp = 0;  // changes with each put()
    Offset position;
    Offset next;  // to be fetched
    bool is_fetching = false;
    MonotonicTime not_before;
    std::deque<ConsumedRecord> kept;
  };
  struct Asked {
    TopicPartition at;
    Uuid topic;
    uint64_t stamp = 0;
    Offset offset;
  };
  using Row = protocol::FetchResponse::PartitionData;

  runtime::Task<> fetch(BrokerId leader, std::vector<Asked> asked);
  protocol::FetchRequest request_for(const std::vector<Asked>& asked) const;
  void arrived(const Asked& asked, const Row* row);
  void keep(Place& place, const TopicPartition& at, const Slice& records);
  ClientResult<void> keep_batch(Place& place, const TopicPartition& at,
                                const protocol::records::BatchView& batch);

  Cluster& cluster_;
  const FetchOptions options_;
  const Lane lane_;
  uint64_t last_stamp_ = 0;
  std::map<TopicPartition, Place> places_;
  std::set<BrokerId> busy_;
  Astray astray_;
  std::optional<ClientError> problem_;
  std::optional<TopicPartition> last_taken_;
  protocol::records::DecodeScratch scratch_;
  std::optional<runtime::Completion<runtime::Done>> waiter_;
  runtime::TaskScope scope_;  // last: its frames use all of the above
};

}  // namespace varve::client
