// RunReader: brings a run's bytes to whoever walks it, as far as they are needed, and once more from the store if
// they turn out to be corrupt.
#pragma once

#include "base/log.h"
#include "runtime/runtime.h"
#include "storage/fetch/batch_assembler.h"

namespace varve::storage {

enum class RunReadEnd : uint8_t {
  kDone,     // the walker has seen the whole run
  kStopped,  // the walker wants no more
  kMissing,  // the object is not in the store
  kCorrupt,
  kStorage,  // the store does not answer
};

// What walks a run: called with its bytes, again with more after kNeedMore, again from its start after kCorrupt.
class RunVisitor {
 public:
  virtual ~RunVisitor() = default;
  virtual BatchAssembler::End visit(const metadata::StoredRun& run, const ObjectBytes& bytes) = 0;
  virtual uint64_t needed_to() const = 0;
  virtual std::string problem() const = 0;
};

// Owned by Fetcher. Any io task.
class RunReader {
 public:
  RunReader(ObjectReader& objects, Logger logger, runtime::Runtime& runtime, MetricRegistry& metrics);

  // Starts reading the run's first `bytes`, or all of it. Any number may be started before one is finished.
  StartedRead start(runtime::Executor& executor, const PlannedRun& run, uint64_t bytes, ReadClass read_class);
  // Shows the run to the visitor until it ends. All arguments outlive the task.
  runtime::Task<RunReadEnd> finish(const PlannedRun& run, StartedRead read, RunVisitor& visitor,
                                   ReadClass read_class);

 private:
  void complain(const PlannedRun& run, std::string_view problem);

  ObjectReader& objects_;
  const Logger logger_;
  runtime::Runtime& runtime_;
  LogLimiter complaints_{10s};
  Counter& corrupt_reads_;
};

}  // namespace varve::storage
