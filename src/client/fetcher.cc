#include "client/fetcher.h"

#include "protocol/messages/list_offsets.h"
#include "protocol/records/record_iterator.h"

namespace varve::client {

using protocol::ErrorCode;
using protocol::records::BatchView;
using protocol::records::RecordIterator;
using protocol::records::RecordView;
using runtime::Done;
using runtime::Task;

namespace {

constexpr int64_t kLatest = -1;
constexpr int64_t kEarliest = -2;
constexpr int16_t kFirstFetchById = 13;

std::optional<std::string> text_of(const std::optional<ByteView>& bytes) {
  if (!bytes) return std::nullopt;
  return std::string(as_text(*bytes));
}

ConsumedRecord copy_of(const TopicPartition& at, const RecordView& record, WallTime timestamp) {
  ConsumedRecord copy{at, record.offset, timestamp, text_of(record.key), text_of(record.value), {}};
  for (const auto& header : record.headers) copy.headers.emplace_back(header.key, text_of(header.value));
  return copy;
}

}  // namespace

Fetcher::Fetcher(Cluster& cluster, FetchOptions options)
    : cluster_(cluster), options_(options), lane_(cluster.new_lane()) {}

Task<> Fetcher::close() {
  co_await scope_.close();
  cluster_.close_lane(lane_);
}

void Fetcher::put(const TopicPartition& at, Uuid topic, Offset offset) {
  Place& place = places_[at] = Place();
  place.topic = topic;
  place.stamp = ++last_stamp_;
  place.position = place.next = offset;
}

std::optional<Offset> Fetcher::position(const TopicPartition& at) const {
  auto place = places_.find(at);
  if (place == places_.end()) return std::nullopt;
  return place->second.position;
}

void Fetcher::wake() {
  if (waiter_) waiter_->set(Done{});
}

Task<> Fetcher::wait(MonotonicTime until) {
  waiter_.emplace();
  co_await runtime::wait_until(*waiter_, until, Done{});
}

Task<> Fetcher::advance() {
  std::vector<TopicPartition> wanted;
  for (const auto& [at, place] : places_) {
    bool is_idle = !place.is_fetching && place.kept.empty() && cluster_.now() >= place.not_before;
    if (is_idle) wanted.push_back(at);
  }
  std::map<BrokerId, std::vector<Asked>> by_leader;
  for (const TopicPartition& at : wanted) {
    auto topic = co_await cluster_.topic(at.topic);
    auto found = places_.find(at);
    if (found == places_.end()) continue;
    Place& place = found->second;
    auto index = static_cast<size_t>(at.partition.value());
    bool has_leader = topic && index < topic->leaders.size() && topic->leaders[index] != kNoBroker;
    if (topic && topic->id != place.topic) {
      astray_.born_again.insert(at);
      places_.erase(found);
    } else if (!has_leader) {
      cluster_.forget_topic(at.topic);
      place.not_before = cluster_.now() + cluster_.backoff(2);
    } else if (!busy_.contains(topic->leaders[index]) && !place.is_fetching) {
      by_leader[topic->leaders[index]].push_back({at, place.topic, place.stamp, place.next});
    }
  }
  for (auto& [leader, asked] : by_leader) {
    // Some may have been taken away while others were looked up.
    std::erase_if(asked, [this](const Asked& one) {
      auto found = places_.find(one.at);
      if (found == places_.end() || found->second.stamp != one.stamp) return true;
      found->second.is_fetching = true;
      return false;
    });
    if (asked.empty()) continue;
    busy_.insert(leader);
    scope_.spawn(cluster_.executor(), "fetch", fetch(leader, std::move(asked)));
  }
}

protocol::FetchRequest Fetcher::request_for(const std::vector<Asked>& asked) const {
  protocol::FetchRequest request;
  request.max_wait_ms = static_cast<int32_t>(options_.wait_max / 1ms);
  request.min_bytes = options_.min_bytes;
  request.max_bytes = options_.bytes_max;
  for (const Asked& one : asked) {
    // Places may be of two lives of their topic.
    bool is_same = !request.topics.empty() && request.topics.back().topic == one.at.topic &&
                   request.topics.back().topic_id == one.topic;
    if (!is_same) {
      auto& topic = request.topics.emplace_back();
      topic.topic = one.at.topic;
      topic.topic_id = one.topic;
    }
    auto& row = request.topics.back().partitions.emplace_back();
    row.partition = one.at.partition;
    row.fetch_offset = one.offset;
    row.partition_max_bytes = options_.partition_bytes_max;
  }
  return request;
}

Task<> Fetcher::fetch(BrokerId leader, std::vector<Asked> asked) {
  AskOptions ask{
      .lane = lane_, .versions = {}, .timeout = options_.wait_max + cluster_.options().request_timeout};
  std::map<Uuid, std::string> names;
  for (const Asked& one : asked) {
    if (one.topic.is_zero()) ask.versions.high = kFirstFetchById - 1;
    names[one.topic] = one.at.topic;
  }
  auto response = co_await cluster_.ask(leader, request_for(asked), ask);
  busy_.erase(leader);
  std::map<TopicPartition, const Row*> rows;
  if (response && response->error_code == ErrorCode::kNone) {
    for (const auto& topic : response->responses) {
      auto name = topic.topic.empty() ? names.find(topic.topic_id) : names.end();
      for (const Row& row : topic.partitions) {
        rows[{name == names.end() ? topic.topic : name->second, row.partition_index}] = &row;
      }
    }
  }
  for (const Asked& one : asked) {
    auto row = rows.find(one.at);
    arrived(one, row == rows.end() ? nullptr : row->second);
  }
  wake();
}

void Fetcher::arrived(const Asked& asked, const Row* row) {
  auto found = places_.find(asked.at);
  if (found == places_.end() || found->second.stamp != asked.stamp) return;
  Place& place = found->second;
  place.is_fetching = false;
  if (row != nullptr && row->error_code == ErrorCode::kNone) {
    if (row->records) keep(place, asked.at, row->records->joined());
    return;
  }
  cluster_.forget_topic(asked.at.topic);
  place.not_before = cluster_.now() + cluster_.backoff(0);
  if (row == nullptr) return;
  if (row->error_code == ErrorCode::kOffsetOutOfRange) {
    astray_.out_of_range.insert(asked.at);
    places_.erase(found);
  } else if (!protocol::is_retriable(row->error_code)) {
    problem_ = refused(row->error_code, fmt::format("Fetch of {}", asked.at.to_string())).error();
  }
}

void Fetcher::keep(Place& place, const TopicPartition& at, const Slice& records) {
  ByteView rest = records.view();
  while (!rest.empty()) {
    auto batch = BatchView::first_of(rest);
    // The last one may be cut short by the limit of bytes.
    if (!batch) break;
    rest = rest.subspan(batch->bytes().size());
    auto kept = keep_batch(place, at, *batch);
    if (!kept) {
      problem_ = std::move(kept.error());
      place.not_before = MonotonicTime::never();
      return;
    }
  }
  // Nothing for the application in these offsets.
  if (place.kept.empty()) place.position = place.next;
}

ClientResult<void> Fetcher::keep_batch(Place& place, const TopicPartition& at, const BatchView& batch) {
  Offset end = batch.header().last_offset().plus(1);
  if (end <= place.next) return {};
  if (!batch.checksum_matches()) {
    return failed(ClientErrc::kMalformed,
                  fmt::format("{} at {}: wrong checksum", at.to_string(), batch.header().base_offset));
  }
  if (!batch.header().control()) {
    RecordIterator records(batch, scratch_, options_.decompressed_bytes_max);
    for (;;) {
      auto record = records.next();
      if (!record) {
        return failed(
            ClientErrc::kMalformed,
            fmt::format("{} at {}: {}", at.to_string(), batch.header().base_offset, record.error().message));
      }
      if (!*record) break;
      if ((*record)->offset < place.next) continue;
      bool is_stamped = batch.header().log_append_time();
      WallTime timestamp = is_stamped ? batch.header().max_timestamp : (*record)->timestamp;
      place.kept.push_back(copy_of(at, **record, timestamp));
    }
  }
  place.next = end;
  return {};
}

std::vector<ConsumedRecord> Fetcher::take(size_t records_max) {
  std::vector<ConsumedRecord> taken;
  // Begins behind the partition of which something was taken last, so that none has to wait for ever.
  auto start = last_taken_ ? places_.upper_bound(*last_taken_) : places_.begin();
  for (size_t i = 0; i < places_.size() && taken.size() < records_max; ++i, ++start) {
    if (start == places_.end()) start = places_.begin();
    Place& place = start->second;
    while (!place.kept.empty() && taken.size() < records_max) {
      place.position = place.kept.front().offset.plus(1);
      taken.push_back(std::move(place.kept.front()));
      place.kept.pop_front();
      last_taken_ = start->first;
    }
    if (place.kept.empty()) place.position = place.next;
  }
  return taken;
}

Task<ClientResult<Offset>> Fetcher::find_end(TopicPartition at, OffsetReset end) {
  auto topic = co_await cluster_.topic(at.topic);
  if (!topic) co_return pass_error(topic);
  auto index = static_cast<size_t>(at.partition.value());
  if (index >= topic->leaders.size()) co_return refused(ErrorCode::kUnknownTopicOrPartition, at.to_string());
  protocol::ListOffsetsRequest request;
  request.replica_id = kNoBroker;
  request.topics.emplace_back().name = at.topic;
  auto& asked = request.topics[0].partitions.emplace_back();
  asked.partition_index = at.partition;
  asked.timestamp = end == OffsetReset::kEarliest ? kEarliest : kLatest;
  // Version 0 answers with a list.
  AskOptions ask{.lane = Lane::kShared, .versions = {.low = 1}, .timeout = {}};
  auto response = co_await cluster_.ask(topic->leaders[index], std::move(request), ask);
  if (!response || response->topics.size() != 1 || response->topics[0].partitions.size() != 1) {
    cluster_.forget_topic(at.topic);
    if (!response) co_return pass_error(response);
    co_return failed(ClientErrc::kMalformed, "ListOffsets answers other partitions");
  }
  const auto& row = response->topics[0].partitions[0];
  if (row.error_code != ErrorCode::kNone) {
    cluster_.forget_topic(at.topic);
    co_return refused(row.error_code, fmt::format("ListOffsets of {}", at.to_string()));
  }
  co_return row.offset;
}

}  // namespace varve::client
