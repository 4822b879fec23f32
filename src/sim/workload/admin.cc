#include "sim/workload/admin.h"

#include "protocol/messages/create_topics.h"
#include "protocol/messages/delete_topics.h"

namespace varve::sim {

using protocol::ErrorCode;
using runtime::Task;

namespace {

constexpr int16_t kFirstCreateWithId = 7;
constexpr int16_t kFirstDeleteById = 6;
constexpr Duration kPause = 300ms;

}  // namespace

Admin::Admin(WorkloadContext& context, Process& process, std::vector<AdminTopic> topics)
    : client_(context, process, "admin"), topics_(std::move(topics)) {
  for (const AdminTopic& topic : topics_) {
    if (topic.stamps_append_time) context.topics.will_stamp(topic.name);
  }
}

void Admin::start() {
  for (const AdminTopic& topic : topics_) {
    ++busy_;
    client_.scope().spawn(client_.executor(), "keep topic", keep(topic));
  }
}

Task<> Admin::keep(AdminTopic topic) {
  for (;;) {
    Uuid id = co_await create(topic);
    --busy_;
    if (topic.mean_life == Duration{0}) co_return;
    co_await runtime::sleep_for(Duration(client_.random().between(0, 2 * topic.mean_life.count())));
    if (client_.context().is_over) co_return;
    ++busy_;
    co_await destroy(id);
    co_await runtime::sleep_for(Duration(client_.random().between(0, topic.mean_life.count() / 4)));
  }
}

Task<Uuid> Admin::create(AdminTopic topic) {
  for (;;) {
    std::string host = client_.any_host();
    protocol::CreateTopicsRequest request;
    auto& asked = request.topics.emplace_back();
    asked.name = topic.name;
    asked.num_partitions = static_cast<int32_t>(topic.partitions);
    asked.replication_factor = 1;
    if (topic.stamps_append_time) {
      auto& config = asked.configs.emplace_back();
      config.name = "message.timestamp.type";
      config.value = "LogAppendTime";
    }
    request.timeout_ms = 10'000;
    auto response = co_await client_.ask(host, std::move(request), kFirstCreateWithId);
    ErrorCode error = response ? response->topics.at(0).error_code : ErrorCode::kRequestTimedOut;
    client_.context().world.trace("creating {} at {}: error {}", topic.name, host,
                                  static_cast<int16_t>(error));
    Uuid id;
    if (error == ErrorCode::kNone) {
      id = response->topics[0].topic_id;
      client_.context().topics.told_of(topic.name, id, topic.partitions);
    } else if (error == ErrorCode::kTopicAlreadyExists) {
      // An earlier try of ours has come through; it cannot be the life before, which is deleted.
      MonotonicTime asked_at = client_.now();
      auto found = co_await client_.find_topic(host, topic.name);
      if (found) id = found->id;
      if (found) client_.context().topics.called_present(id, asked_at, who(host, client_));
    }
    if (!id.is_zero()) {
      co_await look_elsewhere(host, topic.name);
      co_return id;
    }
    client_.context().world.happened(fmt::format("client.create_error_{}", static_cast<int16_t>(error)));
    co_await runtime::sleep_for(kPause);
  }
}

Task<> Admin::look_elsewhere(std::string maker, std::string topic) {
  std::string other = client_.other_host(maker);
  // Whatever is wrong with the answer is a finding.
  co_await client_.find_topic(other, topic);
}

Task<> Admin::destroy(Uuid id) {
  client_.context().topics.ask_deletion(id);
  for (;;) {
    protocol::DeleteTopicsRequest request;
    auto& asked = request.topics.emplace_back();
    asked.name = std::nullopt;
    asked.topic_id = id;
    request.timeout_ms = 10'000;
    auto response = co_await client_.ask(client_.any_host(), std::move(request), kFirstDeleteById);
    ErrorCode error = response ? response->responses.at(0).error_code : ErrorCode::kRequestTimedOut;
    client_.context().world.trace("deleting {}: error {}", id.to_string(), static_cast<int16_t>(error));
    if (error == ErrorCode::kNone || error == ErrorCode::kUnknownTopicId) {
      client_.context().topics.deleted(id);
      co_return;
    }
    client_.context().world.happened(fmt::format("client.delete_error_{}", static_cast<int16_t>(error)));
    co_await runtime::sleep_for(kPause);
  }
}

}  // namespace varve::sim
