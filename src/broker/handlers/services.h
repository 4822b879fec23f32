// What handlers work with. Owned by the broker; every reference outlives every request.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "base/log.h"
#include "base/metrics.h"
#include "broker/group/group_coordinator.h"
#include "broker/handlers/fetch_session.h"
#include "broker/handlers/producer_ids.h"
#include "broker/handlers/throughput.h"
#include "broker/security/authorizer.h"
#include "broker/security/quotas.h"
#include "broker/settings/settings.h"
#include "metadata/client/metadata_client.h"
#include "protocol/records/payload_reader.h"
#include "runtime/runtime.h"
#include "runtime/task_scope.h"
#include "storage/fetch/fetcher.h"
#include "storage/ingest/ingest.h"

namespace varve::broker {

// The codecs' working memory, one an io executor: a call that decodes borrows it and does not suspend meanwhile.
class DecodeScratches {
 public:
  explicit DecodeScratches(runtime::Runtime& runtime) {
    for (size_t i = 0; i < runtime.io_count(); ++i) scratches_.try_emplace(&runtime.io(i));
  }
  // `executor` is an io executor, and the current one.
  protocol::records::DecodeScratch& of(const runtime::Executor& executor) { return scratches_.at(&executor); }

 private:
  std::unordered_map<const runtime::Executor*, protocol::records::DecodeScratch> scratches_;
};

struct Services {
  runtime::Runtime& runtime;
  const Settings& settings;
  const Authorizer& authorizer;
  ClientQuotas* quotas;  // nullptr: nobody is throttled
  metadata::MetadataClient& metadata;
  storage::Ingest& ingest;
  storage::Fetcher& fetcher;
  FetchSessionCache& fetch_sessions;
  ProducerIds& producer_ids;
  GroupCoordinator& groups;
  Throughput& throughput;
  DecodeScratches& scratches;
  Histogram& produce_latency_ms;
  // Holds what must outlive a request that was answered before it was settled (a Produce at its timeout). Closed by
  // the broker after ingest has stopped.
  runtime::TaskScope& settling;
  MetricRegistry& metrics;
  Logger& logger;
};

}  // namespace varve::broker
