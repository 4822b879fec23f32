#include "metadata/client/metadata_client.h"

#include <algorithm>

#include "metadata/client/bucket_identity.h"
#include "metadata/client/client_core.h"
#include "metadata/client/client_loops.h"

namespace varve::metadata {

using runtime::call;
using runtime::Completion;
using runtime::Done;
using runtime::Task;

MetadataClient::MetadataClient(runtime::Runtime& runtime, MetadataLog& log, object_store::ObjectStore& store,
                               ClientConfig config, Logger& logger, MetricRegistry& metrics, PlantedBugs bugs)
    : impl_(std::make_unique<Impl>(runtime, log, store, std::move(config), logger, metrics, bugs)) {}

MetadataClient::~MetadataClient() = default;

Task<Result<void, StartError>> MetadataClient::start() { return impl_->start(); }

Task<> MetadataClient::stop() { return impl_->stop(); }

const State& MetadataClient::state() const { return impl_->core.state(); }

LogPosition MetadataClient::newest_work() const { return impl_->core.newest_work(); }

bool MetadataClient::is_diverged() const { return impl_->core.is_diverged(); }

void MetadataClient::set_applied_listener(AppliedListener listener) {
  impl_->core.set_listener(std::move(listener));
}

void MetadataClient::propose(std::vector<Command> commands, Completion<ProposeResult> completion) {
  impl_->core.proposer().propose(std::move(commands), std::move(completion));
}

Task<ProposeResult> MetadataClient::propose(Command command) { return impl_->propose(std::move(command)); }

Task<Result<LogPosition, SyncError>> MetadataClient::sync(MonotonicTime deadline) {
  return impl_->sync(deadline);
}

std::shared_ptr<const MetadataImage> MetadataClient::image() const { return impl_->core.image(); }

bool MetadataClient::has_progress() const { return since_progress() <= impl_->config.stale_after; }

Duration MetadataClient::since_progress() const {
  MonotonicTime last{Duration(impl_->last_progress.load(std::memory_order_relaxed))};
  return impl_->runtime.now() - last;
}

Incarnation MetadataClient::incarnation() const { return impl_->core.incarnation(); }
Nonce MetadataClient::nonce() const { return impl_->core.nonce(); }
LogIdentity MetadataClient::identity() const { return impl_->identity; }
Completion<FatalError> MetadataClient::fatal() const { return impl_->core.fatal(); }

}  // namespace varve::metadata
