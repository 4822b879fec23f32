// One member of one group, on a connection of its own, as a client's consumer has it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "client/connection.h"
#include "runtime/runtime.h"

namespace varve::apps {

// Life: join() once, then heartbeat() and commit(). Belongs to one executor.
class Member {
 public:
  Member(runtime::Executor& executor, std::string group, std::string topic,
         std::shared_ptr<client::Connection> connection)
      : executor_(executor),
        group_(std::move(group)),
        topic_(std::move(topic)),
        connection_(std::move(connection)) {}

  // Joins and syncs, again while the group is rebalancing. The leader gives each member one partition.
  runtime::Task<client::ClientResult<void>> join();
  // Error: also a rebalance, which nothing here causes.
  runtime::Task<client::ClientResult<void>> heartbeat();
  // Of the member's partition, an offset more than the last time.
  runtime::Task<client::ClientResult<void>> commit();

 private:
  runtime::Task<client::ClientResult<protocol::ErrorCode>> join_once();
  MonotonicTime deadline() const { return executor_.now() + 120s; }

  runtime::Executor& executor_;
  const std::string group_;
  const std::string topic_;
  std::shared_ptr<client::Connection> connection_;
  std::string id_;
  int32_t generation_ = -1;
  PartitionIndex partition_;
  int64_t offset_ = 0;
};

}  // namespace varve::apps
