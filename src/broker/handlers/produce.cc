#include <fmt/format.h>

#include <algorithm>

#include "broker/handlers/authorization.h"
#include "broker/handlers/errors.h"
#include "broker/handlers/handlers.h"
#include "broker/handlers/produce_checks.h"
#include "broker/handlers/topic_lookup.h"

namespace varve::broker {
namespace {

using metadata::MetadataImage;
using metadata::TopicView;
using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using Topic = ProduceRequest::TopicProduceData;
using ResultRow = ProduceResponse::PartitionProduceResponse;

constexpr int16_t kFirstVersionById = 13;

const TopicView* find(const MetadataImage& image, const Topic& topic, bool by_id) {
  return by_id ? image.find_topic(topic.topic_id) : image.find_topic(topic.name);
}

// A row for each partition of the request, in its order.
ProduceResponse response_for(const ProduceRequest& request) {
  ProduceResponse response;
  response.responses.reserve(request.topic_data.size());
  for (const auto& topic : request.topic_data) {
    auto& rows = response.responses.emplace_back();
    rows.name = topic.name;
    rows.topic_id = topic.topic_id;
    rows.partition_responses.reserve(topic.partition_data.size());
    for (const auto& partition : topic.partition_data) {
      ResultRow& row = rows.partition_responses.emplace_back();
      row.index = partition.index;
      row.base_offset = Offset(-1);
    }
  }
  return response;
}

void refuse_all(ProduceResponse& response, ErrorCode code, std::string_view message) {
  for (auto& topic : response.responses) {
    for (ResultRow& row : topic.partition_responses) {
      row.error_code = code;
      row.error_message = std::string(message);
    }
  }
}

// Why nothing of the request can be taken.
std::optional<std::pair<ErrorCode, std::string_view>> request_error(const Services& services,
                                                                    const RequestContext& context,
                                                                    const ProduceRequest& request) {
  if (request.acks < -1 || request.acks > 1) {
    return std::pair(ErrorCode::kInvalidRequiredAcks, "acks must be 0, 1 or -1 (all)");
  }
  for (const auto& topic : request.topic_data) {
    for (const auto& partition : topic.partition_data) {
      if (!is_transactional(partition.records)) continue;
      if (!request.transactional_id) {
        return std::pair(ErrorCode::kTransactionalIdAuthorizationFailed,
                         "a transactional batch in a request without a transactional id");
      }
      if (!is_allowed(services, context, Operation::kWrite, ResourceType::kTransactionalId,
                      *request.transactional_id)) {
        return std::pair(ErrorCode::kTransactionalIdAuthorizationFailed,
                         "the client may not write with this transactional id");
      }
    }
  }
  return std::nullopt;
}

// One Produce between its checks and its answer.
struct Pending {
  storage::AppendRequest append;
  // The row of each batch in `append`.
  std::vector<ResultRow*> rows;
  uint64_t records = 0;
};

void check_partition(const Services& services, const TopicView& topic,
                     const ProduceRequest::PartitionProduceData& partition, int16_t version,
                     protocol::records::DecodeScratch& scratch, ResultRow& row, Pending& pending) {
  auto checked = check_batch(topic, partition.index, partition.records, version, services.settings.limits,
                             services.runtime.wall_now(), scratch);
  if (!checked) {
    row.error_code = checked.error().code;
    row.error_message = std::move(checked.error().message);
    row.record_errors = std::move(checked.error().record_errors);
    return;
  }
  pending.records += checked->records;
  pending.append.batches.push_back(std::move(checked->batch));
  pending.rows.push_back(&row);
}

Pending check_all(const Services& services, const RequestContext& context, const ProduceRequest& request,
                  const SyncedImage& synced, protocol::records::DecodeScratch& scratch,
                  ProduceResponse& response) {
  bool by_id = context.version >= kFirstVersionById;
  Pending pending;
  pending.append.connection = context.connection.value();
  pending.append.frame_bytes = context.frame_bytes;
  for (size_t t = 0; t < request.topic_data.size(); ++t) {
    const auto& topic = request.topic_data[t];
    const TopicView* view = find(*synced.image, topic, by_id);
    // Ids that name nothing are told of before rights, which are of names.
    bool may_write =
        (by_id && view == nullptr) || is_allowed(services, context, Operation::kWrite, ResourceType::kTopic,
                                                 by_id ? view->name : topic.name);
    for (size_t p = 0; p < topic.partition_data.size(); ++p) {
      ResultRow& row = response.responses[t].partition_responses[p];
      if (!may_write) {
        row.error_code = ErrorCode::kTopicAuthorizationFailed;
      } else if (find_partition(view, topic.partition_data[p].index)) {
        check_partition(services, *view, topic.partition_data[p], context.version, scratch, row, pending);
      } else if (!synced.is_certain) {
        row.error_code = kCannotTellPartition;
      } else {
        row.error_code =
            by_id && view == nullptr ? ErrorCode::kUnknownTopicId : ErrorCode::kUnknownTopicOrPartition;
      }
    }
  }
  return pending;
}

void fill(ResultRow& row, const storage::AppendResult& result, bool by_id) {
  row.error_code = error_of(result.verdict, by_id);
  if (row.error_code != ErrorCode::kNone) {
    row.error_message = std::string(storage::append_verdict_name(result.verdict));
    return;
  }
  row.base_offset = result.base_offset;
  row.log_append_time_ms = result.append_time;
  row.log_start_offset = result.log_start;
}

void reconsider_unknown(const MetadataImage& now, ProduceResponse& response) {
  for (auto& topic : response.responses) {
    for (ResultRow& row : topic.partition_responses) {
      row.error_code = unless_made_again(row.error_code, now, topic.name, row.index);
    }
  }
}

// Waits for the batches' fate and hands it on, however long it takes: the memory of the request stays accounted for
// until then, even if its client was answered or left before.
runtime::Task<> settle(runtime::Completion<storage::AppendResults> settled,
                       runtime::Completion<std::optional<storage::AppendResults>> waiting,
                       std::shared_ptr<const void> memory) {
  std::optional<storage::AppendResults> results = co_await settled.wait();
  memory.reset();
  waiting.set(std::move(results));
}

// nullopt: the request's timeout came first.
runtime::Task<std::optional<storage::AppendResults>> append(Services& services, const RequestContext& context,
                                                            storage::AppendRequest request,
                                                            MonotonicTime deadline) {
  runtime::Completion<storage::AppendResults> settled = services.ingest.submit(std::move(request));
  context.placed.set(runtime::Done{});
  runtime::Completion<std::optional<storage::AppendResults>> waiting;
  runtime::TaskContext& task = co_await runtime::this_context();
  bool is_spawned =
      services.settling.spawn(*task.executor, "settle produce", settle(settled, waiting, context.memory));
  if (!is_spawned) co_return std::nullopt;
  // Not ended by a stop request: while the broker stops, what was read is still answered.
  std::unique_ptr<runtime::Timer> timer;
  if (deadline != MonotonicTime::never()) {
    timer = task.executor->start_timer(deadline, [waiting] { waiting.set(std::nullopt); });
  }
  co_return co_await waiting.wait();
}

std::string error_summary(const ProduceResponse& response) {
  for (const auto& topic : response.responses) {
    for (const ResultRow& row : topic.partition_responses) {
      if (row.error_code == ErrorCode::kNone) continue;
      return fmt::format("acks=0, and partition {} of '{}' failed with error {} {}", row.index, topic.name,
                         static_cast<int16_t>(row.error_code), row.error_message.value_or(""));
    }
  }
  return {};
}

}  // namespace

HandlerTask<ProduceResponse> handle_produce(Services& services, const RequestContext& context,
                                            ProduceRequest request) {
  bool by_id = context.version >= kFirstVersionById;
  ProduceResponse response = response_for(request);
  auto error = request_error(services, context, request);
  if (error) {
    refuse_all(response, error->first, error->second);
  } else {
    // Batches of later requests wait behind this one's place, so nothing overtakes it during the sync.
    SyncedImage synced{services.metadata.image(), true};
    auto find_topic = [&](const Topic& topic) { return find(*synced.image, topic, by_id); };
    if (!knows_all(request.topic_data, find_topic, &Topic::partition_data,
                   &ProduceRequest::PartitionProduceData::index))
      synced = co_await synced_image(services, context.deadline);
    runtime::TaskContext& task = co_await runtime::this_context();
    Pending pending =
        check_all(services, context, request, synced, services.scratches.of(*task.executor), response);
    // The batches hold what is needed of the request.
    int16_t acks = request.acks;
    // As in Kafka the timeout is for acks=all only.
    MonotonicTime deadline = MonotonicTime::never();
    if (acks == -1) deadline = context.received + std::chrono::milliseconds(std::max(request.timeout_ms, 0));
    request = {};
    request.acks = acks;
    if (!pending.rows.empty()) {
      auto results = co_await append(services, context, std::move(pending.append), deadline);
      storage::AppendResult unknown;
      for (size_t i = 0; i < pending.rows.size(); ++i) {
        fill(*pending.rows[i], results ? (*results)[i] : unknown, by_id);
      }
      if (!by_id) reconsider_unknown(*services.metadata.image(), response);
      if (results) services.throughput.produced.add(pending.records, services.runtime.now());
    }
  }
  services.produce_latency_ms.observe(services.runtime.now() - context.received);
  if (request.acks != 0) co_return response;
  // No answer is expected; a closed connection makes the client look at its metadata again (as Kafka).
  std::string summary = error_summary(response);
  if (summary.empty()) co_return Answer<ProduceResponse>::none();
  co_return Answer<ProduceResponse>::close(std::move(summary));
}

}  // namespace varve::broker
