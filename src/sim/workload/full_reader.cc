#include "sim/workload/full_reader.h"

#include "protocol/messages/fetch.h"
#include "protocol/messages/list_offsets.h"

namespace varve::sim {

using protocol::ErrorCode;
using protocol::records::BatchView;
using runtime::Task;

namespace {

constexpr int64_t kLatest = -1;
constexpr int64_t kEarliest = -2;
constexpr int16_t kListOffsetsVersion = 8;
constexpr int16_t kFetchVersion = 17;
constexpr Duration kPause = 100ms;
constexpr Duration kPatience = 1min;

// Nothing but trouble that passes is expected of a healed cluster.
bool may_pass(ErrorCode code) {
  return code == ErrorCode::kKafkaStorageError || code == ErrorCode::kCorruptMessage ||
         code == ErrorCode::kLeaderNotAvailable || code == ErrorCode::kNotLeaderOrFollower;
}

}  // namespace

FullReader::FullReader(WorkloadContext& context, Process& process, std::string host)
    : client_(context, process, "reader of " + host), host_(std::move(host)) {}

void FullReader::start() { client_.scope().spawn(client_.executor(), "read all", run()); }

Task<> FullReader::run() {
  std::vector<TopicLife> topics;
  for (const auto& [id, life] : client_.context().topics.lives()) {
    if (life.is_certain()) topics.push_back(life);
  }
  for (const TopicLife& topic : topics) {
    for (uint32_t i = 0; i < topic.partitions; ++i) {
      PartitionKey key{topic.id, PartitionIndex(static_cast<int32_t>(i))};
      extents_[key] = co_await find_extent(key, topic.name);
      co_await read(key);
    }
  }
  is_finished_ = true;
}

Task<PartitionExtent> FullReader::find_extent(PartitionKey key, std::string topic) {
  std::map<int64_t, Offset> found;
  while (found.size() < 2) {
    protocol::ListOffsetsRequest request;
    request.replica_id = BrokerId(-1);
    request.topics.emplace_back().name = topic;
    auto& partition = request.topics[0].partitions.emplace_back();
    partition.partition_index = key.partition;
    partition.timestamp = found.empty() ? kEarliest : kLatest;
    int64_t asked = partition.timestamp;
    auto response = co_await client_.ask(host_, std::move(request), kListOffsetsVersion);
    if (response) {
      const auto& row = response->topics.at(0).partitions.at(0);
      client_.context().findings.require(row.error_code == ErrorCode::kNone || may_pass(row.error_code),
                                         "{} answers ListOffsets of {} with error {}", host_, key.to_string(),
                                         static_cast<int16_t>(row.error_code));
      if (row.error_code == ErrorCode::kNone) {
        found[asked] = row.offset;
        continue;
      }
    }
    co_await runtime::sleep_for(kPause);
  }
  co_return PartitionExtent{found[kEarliest], found[kLatest]};
}

Task<> FullReader::read(PartitionKey key) {
  Offset at = extents_[key].log_start;
  MonotonicTime last_progress = client_.now();
  while (at < extents_[key].end) {
    client_.context().findings.require(client_.now() - last_progress < kPatience,
                                       "{} has not served {} at {} for {} s", host_, key.to_string(), at,
                                       kPatience / 1s);
    protocol::FetchRequest request;
    request.max_wait_ms = 1'000;
    request.min_bytes = 1;
    request.max_bytes = 1 << 20;
    request.topics.emplace_back().topic_id = key.topic;
    auto& partition = request.topics[0].partitions.emplace_back();
    partition.partition = key.partition;
    partition.fetch_offset = at;
    partition.partition_max_bytes = 1 << 20;
    auto response = co_await client_.ask(host_, std::move(request), kFetchVersion);
    if (!response || response->responses.empty()) {
      co_await runtime::sleep_for(kPause);
      continue;
    }
    const auto& row = response->responses[0].partitions.at(0);
    if (row.error_code != ErrorCode::kNone) {
      client_.context().findings.require(may_pass(row.error_code),
                                         "{} answers a fetch of {} at {} with error {}", host_,
                                         key.to_string(), at, static_cast<int16_t>(row.error_code));
      co_await runtime::sleep_for(kPause);
      continue;
    }
    Slice bytes = row.records ? row.records->joined() : Slice();
    ByteView rest = bytes.view();
    while (!rest.empty()) {
      auto batch = BatchView::first_of(rest);
      if (!batch) break;
      rest = rest.subspan(batch->bytes().size());
      Offset base = batch->header().base_offset;
      Offset end = batch->header().last_offset().plus(1);
      bool is_next = base == at || (at == extents_[key].log_start && base < at && end > at);
      client_.context().findings.require(is_next, "{} serves {} at {} after {}", host_, key.to_string(), base,
                                         at);
      client_.context().history.saw(key, *batch, host_);
      at = std::max(at, end);
      last_progress = client_.now();
    }
  }
}

}  // namespace varve::sim
