#include <algorithm>
#include <array>

#include "broker/handlers/authorization.h"
#include "broker/handlers/batch_walk.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using metadata::MetadataImage;
using metadata::TopicView;
using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;
using PartitionRow = FetchResponse::PartitionData;

constexpr int16_t kFirstVersionById = 13;
constexpr int8_t kReadCommitted = 1;
// Above so many bytes of replies that wait to be sent, further ones are made smaller, down to this.
constexpr size_t kReplyBytesRelaxed = 256 * kMiB;
constexpr size_t kReplyBytesUnderPressure = 64 * kKiB;

FetchSessionRequest session_request(FetchRequest& request, int16_t version) {
  FetchSessionRequest session;
  session.session_id = request.session_id;
  session.epoch = request.session_epoch;
  session.uses_topic_ids = version >= kFirstVersionById;
  for (auto& topic : request.topics) {
    for (const auto& partition : topic.partitions) {
      WantedPartition& wanted = session.partitions.emplace_back();
      wanted.key = {topic.topic_id, topic.topic, partition.partition};
      wanted.offset = partition.fetch_offset;
      wanted.bytes_max = partition.partition_max_bytes;
      wanted.leader_epoch = std::max(partition.current_leader_epoch, -1);
      wanted.last_fetched_epoch = partition.last_fetched_epoch;
    }
  }
  for (const auto& topic : request.forgotten_topics_data) {
    for (PartitionIndex partition : topic.partitions) {
      session.forgotten.push_back({topic.topic_id, topic.topic, partition});
    }
  }
  return session;
}

const TopicView* find(const MetadataImage& image, const FetchKey& key, bool by_id) {
  return by_id ? image.find_topic(key.topic_id) : image.find_topic(key.topic);
}

PartitionRow error_row(PartitionIndex partition, ErrorCode code) {
  PartitionRow row;
  row.partition_index = partition;
  row.error_code = code;
  row.high_watermark = Offset(-1);
  row.aborted_transactions.emplace();
  row.records.emplace();
  return row;
}

// The row of a partition that is there, but whose records are not read. Kafka has no list of transactions there.
PartitionRow unread_row(PartitionIndex partition, ErrorCode code) {
  PartitionRow row = error_row(partition, code);
  row.aborted_transactions = std::nullopt;
  return row;
}

// Why who believes this of the partition, which is there, is not served.
ErrorCode belief_error(const MetadataImage& image, const WantedPartition& wanted, bool is_replica) {
  ErrorCode epoch_error = leader_epoch_error(image, wanted.leader_epoch);
  if (epoch_error != ErrorCode::kNone) return epoch_error;
  // There are no followers here.
  if (is_replica) return ErrorCode::kNotLeaderOrFollower;
  bool is_ahead = wanted.last_fetched_epoch > leader_epoch(image);
  return is_ahead ? ErrorCode::kOffsetOutOfRange : ErrorCode::kNone;
}

// The row of a partition that cannot be asked for, or nullopt and the handle.
std::optional<PartitionRow> early_row(const Services& services, const RequestContext& context,
                                      const SyncedImage& synced, const WantedPartition& wanted,
                                      bool is_replica, PartitionHandle& handle) {
  bool by_id = context.version >= kFirstVersionById;
  // Ids that name nothing are told of before rights, which are of names.
  const TopicView* topic = find(*synced.image, wanted.key, by_id);
  bool may_read =
      (by_id && topic == nullptr) || is_allowed(services, context, Operation::kRead, ResourceType::kTopic,
                                                by_id ? topic->name : wanted.key.topic);
  if (!may_read) return error_row(wanted.key.partition, ErrorCode::kTopicAuthorizationFailed);
  std::optional<PartitionHandle> found = find_partition(topic, wanted.key.partition);
  if (!found) {
    ErrorCode code = !synced.is_certain ? kCannotTellPartition : ErrorCode::kUnknownTopicOrPartition;
    if (synced.is_certain && by_id && topic == nullptr) code = ErrorCode::kUnknownTopicId;
    return error_row(wanted.key.partition, code);
  }
  ErrorCode error = belief_error(*synced.image, wanted, is_replica);
  if (error != ErrorCode::kNone) return unread_row(wanted.key.partition, error);
  handle = *found;
  return std::nullopt;
}

PartitionRow fetched_row(PartitionIndex partition, storage::FetchedPartition fetched, int16_t version,
                         bool is_read_committed, uint64_t& records) {
  ErrorCode code = fetch_error_of(fetched.error, version, version >= kFirstVersionById);
  if (fetched.error != storage::FetchErrc::kNone) return unread_row(partition, code);
  PartitionRow row = error_row(partition, code);
  records += count_records(fetched.records);
  row.high_watermark = fetched.high_watermark;
  row.last_stable_offset = fetched.last_stable;
  row.log_start_offset = fetched.log_start;
  if (is_read_committed) {
    for (const metadata::AbortedTransaction& transaction : fetched.aborted) {
      auto& entry = row.aborted_transactions->emplace_back();
      entry.producer_id = transaction.producer_id;
      entry.first_offset = transaction.first_offset;
    }
  } else {
    row.aborted_transactions = std::nullopt;  // null where nobody asked, as in Kafka
  }
  for (Slice& slice : fetched.records) row.records->append(std::move(slice));
  return row;
}

// How many bytes the answer may have, given what waits to be sent already.
uint32_t answer_bytes_max(const Limits& limits, const RequestContext& context, int32_t asked) {
  size_t most = limits.fetch_response_bytes_max;
  if (context.reply_bytes_waiting > kReplyBytesRelaxed) most = std::min(most, kReplyBytesUnderPressure);
  return static_cast<uint32_t>(std::min<size_t>(most, static_cast<size_t>(std::max(asked, 0))));
}

storage::FetchRequest storage_request(const Services& services, const RequestContext& context,
                                      const FetchRequest& request) {
  storage::FetchRequest fetch;
  fetch.bytes_max = answer_bytes_max(services.settings.limits, context, request.max_bytes);
  fetch.bytes_min = std::min(fetch.bytes_max, static_cast<uint32_t>(std::max(request.min_bytes, 0)));
  Duration wait = std::chrono::milliseconds(std::max(request.max_wait_ms, 0));
  fetch.deadline = context.received + std::min(wait, services.settings.limits.connection_idle_max);
  fetch.is_read_committed = request.isolation_level == kReadCommitted;
  return fetch;
}

// The rows of all partitions of the session's request, in its order.
runtime::Task<std::vector<PartitionRow>> fetch_rows(Services& services, const RequestContext& context,
                                                    const FetchRequest& request,
                                                    const FetchContext& session) {
  SyncedImage synced{services.metadata.image(), true};
  auto find_topic = [&](const WantedPartition& wanted) {
    return find(*synced.image, wanted.key, session.uses_topic_ids);
  };
  auto index_of = [](const WantedPartition& wanted) { return std::array{wanted.key.partition}; };
  if (!knows_all(session.partitions, find_topic, index_of, std::identity()))
    synced = co_await synced_image(services, context.deadline);
  std::vector<PartitionRow> rows(session.partitions.size());
  std::vector<size_t> asked;
  bool is_replica = std::max(request.replica_id, request.replica_state.replica_id) >= BrokerId(0);
  storage::FetchRequest fetch = storage_request(services, context, request);
  for (size_t i = 0; i < session.partitions.size(); ++i) {
    const WantedPartition& wanted = session.partitions[i];
    PartitionHandle handle;
    if (auto row = early_row(services, context, synced, wanted, is_replica, handle)) {
      rows[i] = std::move(*row);
      continue;
    }
    storage::FetchPartition partition;
    partition.partition = handle;
    partition.offset = wanted.offset;
    partition.bytes_max = static_cast<uint32_t>(std::max(wanted.bytes_max, 0));
    fetch.partitions.push_back(partition);
    asked.push_back(i);
  }
  if (asked.empty()) co_return rows;
  uint64_t records = 0;
  std::vector<storage::FetchedPartition> fetched = co_await services.fetcher.fetch(std::move(fetch));
  std::shared_ptr<const MetadataImage> now = services.metadata.image();
  for (size_t i = 0; i < asked.size(); ++i) {
    const FetchKey& key = session.partitions[asked[i]].key;
    PartitionRow& row = rows[asked[i]];
    row = fetched_row(key.partition, std::move(fetched[i]), context.version,
                      request.isolation_level == kReadCommitted, records);
    if (!session.uses_topic_ids) {
      row.error_code = unless_made_again(row.error_code, *now, key.topic, key.partition);
    }
  }
  services.throughput.fetched.add(records, services.runtime.now());
  co_return rows;
}

FetchedSummary summary_of(const PartitionRow& row) {
  FetchedSummary summary;
  summary.has_records = row.records && !row.records->empty();
  summary.has_error = row.error_code != ErrorCode::kNone;
  summary.high_watermark = row.high_watermark;
  summary.log_start = row.log_start_offset;
  return summary;
}

// Rows of one topic that follow each other share an entry.
void add_row(FetchResponse& response, const FetchKey& key, PartitionRow row) {
  bool is_same = !response.responses.empty() && response.responses.back().topic == key.topic &&
                 response.responses.back().topic_id == key.topic_id;
  if (!is_same) {
    auto& topic = response.responses.emplace_back();
    topic.topic = key.topic;
    topic.topic_id = key.topic_id;
  }
  response.responses.back().partitions.push_back(std::move(row));
}

}  // namespace

HandlerTask<FetchResponse> handle_fetch(Services& services, const RequestContext& context,
                                        FetchRequest request) {
  FetchContext session =
      services.fetch_sessions.begin(session_request(request, context.version), services.runtime.now());
  FetchResponse response;
  std::vector<PartitionRow> rows;
  if (session.error == ErrorCode::kNone) rows = co_await fetch_rows(services, context, request, session);
  std::vector<FetchedSummary> summaries;
  summaries.reserve(rows.size());
  for (const PartitionRow& row : rows) summaries.push_back(summary_of(row));
  FetchSessionAnswer answer = services.fetch_sessions.finish(session, summaries, services.runtime.now());
  response.error_code = answer.error;
  response.session_id = answer.session_id;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (answer.included[i]) add_row(response, session.partitions[i].key, std::move(rows[i]));
  }
  co_return response;
}

}  // namespace varve::broker
