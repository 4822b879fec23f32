// ProducerIds: hands out producer ids, a block of the log at a time.
#pragma once

#include <mutex>
#include <vector>

#include "metadata/client/metadata_client.h"
#include "runtime/runtime.h"

namespace varve::broker {

// Ids of a block that were not handed out when the broker ends are never used; the space is 2^63. Any io task.
// Owned by the broker.
class ProducerIds {
 public:
  ProducerIds(runtime::Runtime& runtime, metadata::MetadataClient& metadata)
      : runtime_(runtime), metadata_(metadata) {}
  ProducerIds(const ProducerIds&) = delete;
  ProducerIds& operator=(const ProducerIds&) = delete;

  // An id that nobody else ever gets, by `deadline`.
  runtime::Task<Result<ProducerId, metadata::ProposeError>> next(MonotonicTime deadline);

 private:
  static constexpr uint32_t kBlockSize = 1000;

  runtime::Runtime& runtime_;
  metadata::MetadataClient& metadata_;
  std::mutex mutex_;
  ProducerId next_{0};
  ProducerId end_{0};
  // Who waits for the block that is being fetched; one fetch at a time.
  bool is_fetching_ = false;
  std::vector<runtime::Completion<runtime::Done>> waiters_;
};

}  // namespace varve::broker
