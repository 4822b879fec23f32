// What a broker tells operators over HTTP: /metrics, /healthz, /readyz, and entries of its metadata log for
// `varve inspect`.
#pragma once

#include <atomic>
#include <string>

#include "base/metrics.h"
#include "metadata/client/metadata_client.h"
#include "metadata/log/metadata_log.h"
#include "object_store/metered_store.h"
#include "runtime/http/http_server.h"

namespace varve::broker {

// Whether the broker serves, as /readyz tells it. Owned by the broker; any thread.
class Readiness {
 public:
  enum class Phase : uint8_t { kStarting, kServing, kStopping };
  // A serving broker is ready until it has not heard of the metadata log for so long (invariant 5).
  static constexpr Duration kProgressMax = 30s;

  void set(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // "" if ready, else why not. `metadata` may be null while starting.
  std::string problem(const metadata::MetadataClient* metadata) const;

 private:
  std::atomic<Phase> phase_{Phase::kStarting};
};

// Life: made before the metadata client, destroyed after the HTTP server has stopped. Any io executor.
class AdminHttp final : public runtime::http::Handler {
 public:
  AdminHttp(MetricRegistry& metrics, const Readiness& readiness, const object_store::MeteredStore& store,
            metadata::MetadataLog& log)
      : metrics_(metrics), readiness_(readiness), store_(store), log_(log) {}

  // Set once, when it is there.
  void set_metadata(const metadata::MetadataClient* metadata) { metadata_ = metadata; }

  runtime::Task<runtime::http::Response> handle(runtime::http::Request request) override;

 private:
  runtime::Task<runtime::http::Response> show_log(runtime::http::Request request);

  MetricRegistry& metrics_;
  const Readiness& readiness_;
  const object_store::MeteredStore& store_;
  metadata::MetadataLog& log_;
  std::atomic<const metadata::MetadataClient*> metadata_{nullptr};
};

}  // namespace varve::broker
