#include "storage/ingest/ingest_metrics.h"

namespace varve::storage {
namespace {

Histogram& stage(MetricRegistry& registry, const char* name) {
  return registry.histogram("varve_produce_stage_seconds",
                            "Time of produced batches in each stage of the write path", kStageSecondsBuckets,
                            {{"stage", name}});
}

}  // namespace

IngestMetrics::IngestMetrics(MetricRegistry& registry)
    : buffer(stage(registry, "buffer")),
      put(stage(registry, "put")),
      chain(stage(registry, "chain")),
      commit(stage(registry, "commit")),
      objects(registry.counter("varve_wal_objects_total", "WAL objects uploaded")),
      object_bytes(registry.counter("varve_wal_object_bytes_total", "Bytes of WAL objects uploaded")),
      renewed_uploads(registry.counter(
          "varve_wal_uploads_renewed_total",
          "PUTs of WAL objects tried again under a new key, as nobody knows what the first came to")),
      failed_uploads(
          registry.counter("varve_wal_uploads_failed_total", "Uploads of WAL objects that failed for good")),
      fenced_objects(registry.counter("varve_wal_objects_fenced_total",
                                      "Commits refused because the fence had passed the object's epoch")),
      held_batches(registry.counter("varve_ingest_held_batches_total",
                                    "Batches held because their predecessor was missing")),
      failed_batches(registry.counter("varve_ingest_failed_batches_total", "Batches answered with an error")),
      early_batches_dropped(registry.counter("varve_ingest_early_batches_dropped_total",
                                             "Early acknowledged batches that could not be stored")),
      memory_bytes(
          registry.gauge("varve_ingest_memory_bytes", "Budget in use by buffered and uploading batches")),
      requests_waiting(
          registry.gauge("varve_ingest_requests_waiting", "Requests waiting for room in the budget")),
      uploads(registry.gauge("varve_ingest_uploads", "Uploads of WAL objects under way")) {}

}  // namespace varve::storage
