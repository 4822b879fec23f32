// Broker: one whole broker, put together. Ten of them live in one process, real or simulated.
#pragma once

#include <memory>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/planted_bugs.h"
#include "broker/security/authorizer.h"
#include "broker/security/quotas.h"
#include "broker/settings/settings.h"
#include "metadata/client/metadata_client.h"
#include "metadata/log/metadata_log.h"
#include "object_store/object_store.h"
#include "runtime/runtime.h"

namespace varve::broker {

struct BrokerError {
  enum class Code : uint8_t {
    kAddress,   // a listener cannot be bound
    kMetadata,  // see metadata::StartErrc
    kTimeout,   // KAFSCALE_STARTUP_TIMEOUT_SEC
  };
  Code code;
  std::string message;  // one line
};

// What a broker stands on. All of it outlives the broker.
struct BrokerWorld {
  runtime::Runtime& runtime;
  object_store::ObjectStore& store;
  metadata::MetadataLog& log;
  // Commit interval where the settings name none: depends on what a PUT costs.
  Duration commit_interval = 250ms;
  // How often the fence passes the uploads under way, so that dead objects can go; each costs them a second PUT.
  Duration fence_interval = 5min;
  // While deletions wait, a snapshot of the metadata state is taken after so long, however little log there is.
  Duration snapshot_after_time = 60s;
  // Asked before each answer.
  const Authorizer& authorizer = allow_everything();
  // Told of each request; nullptr: nobody is throttled.
  ClientQuotas* quotas = nullptr;
};

// Life: construct, co_await start() on io(0), serve, co_await stop() on io(0), destroy. After a failed start() stop()
// is still due. In a simulated crash it is destroyed where it stands, once its runtime runs nothing any more.
class Broker {
 public:
  Broker(BrokerWorld world, Settings settings, Logger logger, MetricRegistry& metrics, PlantedBugs bugs = {});
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // Binds the addresses, joins the metadata log, serves.
  runtime::Task<Result<void, BrokerError>> start();
  // Takes nothing new, answers and stores what it has, within settings.shutdown_timeout, and leaves the log.
  runtime::Task<> stop();

  // Set when the broker cannot go on; it then has to be stopped.
  runtime::Completion<metadata::FatalError> fatal() const;

  // After start(). The ports are the real ones where 0 was asked for.
  const runtime::Address& kafka_address() const;  // of the first listener
  const runtime::Address& kafka_address(std::string_view listener) const;
  const runtime::Address& http_address() const;
  // For simulation and tests. Null before start().
  metadata::MetadataClient* metadata();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace varve::broker
