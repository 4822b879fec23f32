#include "sim/workload/consumer.h"

#include <algorithm>

#include "protocol/messages/list_offsets.h"

namespace varve::sim {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;
using protocol::records::BatchView;
using runtime::Task;

namespace {

constexpr int64_t kEarliest = -2;
constexpr Duration kPause = 200ms;
constexpr int16_t kFirstVersionWithSessions = 7;
constexpr uint32_t kRefreshPerMille = 20;

}  // namespace

Consumer::Consumer(WorkloadContext& context, Process& process, ConsumerOptions options)
    : client_(context, process, fmt::format("consumer {}", options.number)),
      options_(std::move(options)),
      host_(client_.any_host()) {}

void Consumer::start() { client_.scope().spawn(client_.executor(), "consume", run()); }

Task<> Consumer::run() {
  for (;;) {
    co_await look_up();
    if (positions_.empty()) {
      co_await runtime::sleep_for(kPause);
      continue;
    }
    if (client_.random().chance(options_.switch_per_mille, 1000)) {
      host_ = client_.other_host(host_);
      session_.reset();
    }
    co_await fetch();
  }
}

Task<> Consumer::look_up() {
  for (const std::string& topic : options_.topics) {
    // Partitions may have been added.
    if (ids_.contains(topic) && !client_.random().chance(kRefreshPerMille, 1000)) continue;
    auto found = co_await client_.find_topic(client_.any_host(), topic);
    if (!found) continue;
    ids_[topic] = found->id;
    names_[found->id] = topic;
    for (uint32_t i = 0; i < found->partitions; ++i) {
      PartitionKey key{found->id, PartitionIndex(static_cast<int32_t>(i))};
      if (positions_.try_emplace(key, Offset(0)).second) session_.reset();
    }
  }
}

Task<> Consumer::fetch() {
  auto connection = co_await client_.connect(host_);
  if (connection == nullptr) {
    host_ = client_.other_host(host_);
    session_.reset();
    co_return;
  }
  Asked asked{.host = host_,
              .connection = connection->number(),
              .at = client_.now(),
              .offsets = positions_,
              .acked_ends = {}};
  for (const auto& [key, offset] : positions_) {
    asked.acked_ends[key] = client_.context().history.acked_end(key);
  }
  FetchRequest request = request_for(asked);
  auto response = co_await KafkaConnection::ask(connection, std::move(request), options_.version,
                                                client_.now() + KafkaClient::kRequestTimeout);
  if (!response) {
    session_.reset();
    host_ = client_.other_host(host_);
    co_await runtime::sleep_for(kPause);
    co_return;
  }
  if (response->error_code != ErrorCode::kNone) {
    bool is_session = response->error_code == ErrorCode::kFetchSessionIdNotFound ||
                      response->error_code == ErrorCode::kInvalidFetchSessionEpoch;
    client_.context().findings.require(is_session, "{} answers a Fetch with error {}",
                                       who(asked.host, client_), static_cast<int16_t>(response->error_code));
    client_.context().world.happened("client.fetch_session_lost");
    session_.reset();
    co_return;
  }
  std::vector<PartitionKey> out_of_range;
  handle(asked, *response, out_of_range);
  for (const PartitionKey& key : out_of_range) co_await reset(asked.host, key);
}

FetchRequest Consumer::request_for(Asked& asked) {
  FetchRequest request;
  request.max_wait_ms = static_cast<int32_t>(options_.max_wait / 1ms);
  request.min_bytes = options_.min_bytes;
  request.max_bytes = options_.max_bytes;
  bool has_session = options_.uses_sessions && options_.version >= kFirstVersionWithSessions;
  if (has_session && !session_) session_ = Session();
  if (has_session) {
    request.session_id = session_->id;
    request.session_epoch = session_->epoch;
  }
  for (const auto& [key, offset] : asked.offsets) {
    if (has_session && session_->epoch > 0) {
      auto known = session_->known.find(key);
      if (known != session_->known.end() && known->second == offset) continue;
    }
    if (has_session) session_->known[key] = offset;
    add_partition(request, key, offset);
  }
  return request;
}

void Consumer::add_partition(FetchRequest& request, const PartitionKey& key, Offset offset) const {
  if (request.topics.empty() || request.topics.back().topic_id != key.topic) {
    request.topics.emplace_back().topic_id = key.topic;
    request.topics.back().topic = names_.at(key.topic);
  }
  auto& partition = request.topics.back().partitions.emplace_back();
  partition.partition = key.partition;
  partition.fetch_offset = offset;
  partition.partition_max_bytes = options_.partition_max_bytes;
}

void Consumer::handle(const Asked& asked, const FetchResponse& response,
                      std::vector<PartitionKey>& out_of_range) {
  if (session_) {
    bool is_new = session_->id == 0;
    session_->id = response.session_id;
    ++session_->epoch;
    // The broker may keep no session: then each fetch is whole.
    if (is_new && response.session_id == 0) session_.reset();
  }
  for (const auto& topic : response.responses) {
    Uuid id = topic.topic_id;
    if (!by_id()) {
      auto found = ids_.find(topic.topic);
      if (found == ids_.end()) continue;
      id = found->second;
    }
    for (const Row& row : topic.partitions) {
      PartitionKey key{id, row.partition_index};
      if (asked.offsets.contains(key)) handle_row(asked, key, row, out_of_range);
    }
  }
}

void Consumer::handle_row(const Asked& asked, const PartitionKey& key, const Row& row,
                          std::vector<PartitionKey>& out_of_range) {
  WorkloadContext& context = client_.context();
  std::string broker = who(asked.host, client_);
  if (row.error_code != ErrorCode::kNone) {
    context.world.happened(fmt::format("client.fetch_error_{}", static_cast<int16_t>(row.error_code)));
  }
  switch (row.error_code) {
    case ErrorCode::kNone:
      check_marks(asked, key, row);
      return read_records(asked, key, row);
    case ErrorCode::kUnknownTopicOrPartition:
    case ErrorCode::kUnknownTopicId:
      context.topics.called_absent(key.topic, asked.at, broker);
      return forget(key);
    case ErrorCode::kOffsetOutOfRange: {
      // An offset that somebody was served or promised is there unless somebody wants it deleted.
      bool is_promised = asked.offsets.at(key) <= asked.acked_ends.at(key) &&
                         asked.offsets.at(key) >= context.history.deleted_records(key).asked;
      context.findings.require(!is_promised || context.topics.find(key.topic) == nullptr,
                               "{} calls offset {} of {} out of range, below the acknowledged end {}", broker,
                               asked.offsets.at(key), key.to_string(), asked.acked_ends.at(key));
      out_of_range.push_back(key);
      return;
    }
    case ErrorCode::kCorruptMessage:
    case ErrorCode::kKafkaStorageError:
    case ErrorCode::kLeaderNotAvailable:
    case ErrorCode::kNotLeaderOrFollower:
      host_ = client_.other_host(host_);
      session_.reset();
      return;
    default:
      context.findings.add(fmt::format("{} answers a fetch of {} with error {}", broker, key.to_string(),
                                       static_cast<int16_t>(row.error_code)));
  }
}

void Consumer::check_marks(const Asked& asked, const PartitionKey& key, const Row& row) {
  Findings& findings = client_.context().findings;
  Marks& marks = marks_[key];
  if (marks.connection == asked.connection) {
    findings.require(row.high_watermark >= marks.high_watermark,
                     "{}: the high watermark of {} fell from {} to {}", who(asked.host, client_),
                     key.to_string(), marks.high_watermark, row.high_watermark);
    findings.require(options_.version < 5 || row.log_start_offset >= marks.log_start,
                     "{}: the log start of {} fell from {} to {}", who(asked.host, client_), key.to_string(),
                     marks.log_start, row.log_start_offset);
  }
  marks = {asked.connection, row.high_watermark, row.log_start_offset};
}

void Consumer::read_records(const Asked& asked, const PartitionKey& key, const Row& row) {
  if (!row.records || row.records->empty()) return;
  auto position = positions_.find(key);
  if (position == positions_.end() || position->second != asked.offsets.at(key)) return;
  WorkloadContext& context = client_.context();
  std::string broker = who(asked.host, client_);
  Slice bytes = row.records->joined();
  ByteView rest = bytes.view();
  while (!rest.empty()) {
    auto batch = BatchView::first_of(rest);
    if (!batch) break;  // cut at the end, as Kafka may
    rest = rest.subspan(batch->bytes().size());
    const auto& header = batch->header();
    Offset end = header.last_offset().plus(1);
    context.findings.require(end <= row.high_watermark, "{} serves {} up to {}, above the high watermark {}",
                             broker, key.to_string(), end, row.high_watermark);
    bool is_next = header.base_offset == position->second ||
                   (position->second == asked.offsets.at(key) && header.base_offset < position->second &&
                    end > position->second);
    context.findings.require(is_next, "{} serves {} at {} after {}", broker, key.to_string(),
                             header.base_offset, position->second);
    context.history.saw(key, *batch, broker);
    position->second = std::max(position->second, end);
  }
}

void Consumer::forget(const PartitionKey& key) {
  ids_.erase(names_.at(key.topic));
  std::erase_if(positions_, [&key](const auto& entry) { return entry.first.topic == key.topic; });
  session_.reset();
}

Task<> Consumer::reset(std::string host, PartitionKey key) {
  protocol::ListOffsetsRequest request;
  request.replica_id = BrokerId(-1);
  request.topics.emplace_back().name = names_.at(key.topic);
  auto& partition = request.topics[0].partitions.emplace_back();
  partition.partition_index = key.partition;
  partition.timestamp = kEarliest;
  auto response = co_await client_.ask(host, std::move(request), int16_t{8});
  if (!response || response->topics.empty() || response->topics[0].partitions.empty()) co_return;
  const auto& row = response->topics[0].partitions[0];
  auto position = positions_.find(key);
  if (row.error_code == ErrorCode::kNone && position != positions_.end()) position->second = row.offset;
}

}  // namespace varve::sim
