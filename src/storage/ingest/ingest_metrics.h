// The instruments of the write path.
#pragma once

#include "base/metrics.h"

namespace varve::storage {

// Owned by Ingest; the instruments belong to the registry.
struct IngestMetrics {
  explicit IngestMetrics(MetricRegistry& registry);

  // A produce in stages: from arrival to the upload's start, the PUT, waiting for earlier batches of its chains,
  // and from the proposal to the own apply of it.
  Histogram& buffer;
  Histogram& put;
  Histogram& chain;
  Histogram& commit;

  Counter& objects;
  Counter& object_bytes;
  Counter& renewed_uploads;
  Counter& failed_uploads;
  Counter& fenced_objects;
  Counter& held_batches;
  Counter& failed_batches;
  Counter& early_batches_dropped;
  Gauge& memory_bytes;
  Gauge& requests_waiting;
  Gauge& uploads;
};

}  // namespace varve::storage
