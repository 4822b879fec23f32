// What the operating system knows of this process, under KafScale's names.
#pragma once

#include "base/metrics.h"
#include "runtime/runtime.h"

namespace varve::apps {

// kafscale_broker_mem_alloc_bytes, mem_sys_bytes, heap_inuse_bytes, cpu_percent and goroutines (here: threads), and
// varve_open_files. Read when the registry is printed;
// the runtime outlives it.
void add_process_metrics(MetricRegistry& metrics, runtime::Runtime& runtime);

}  // namespace varve::apps
