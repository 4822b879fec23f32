#include "storage/fetch/run_reader.h"

#include <algorithm>

namespace varve::storage {

using object_store::StoreErrc;

RunReader::RunReader(ObjectReader& objects, Logger logger, runtime::Runtime& runtime, MetricRegistry& metrics)
    : objects_(objects),
      logger_(std::move(logger)),
      runtime_(runtime),
      corrupt_reads_(
          metrics.counter("varve_corrupt_reads_total", "Reads whose bytes were not what was written")) {}

StartedRead RunReader::start(runtime::Executor& executor, const PlannedRun& run, uint64_t bytes,
                             ReadClass read_class) {
  uint64_t from = run.run.position;
  return objects_.start(executor, run.object, from, from + std::min<uint64_t>(bytes, run.run.bytes),
                        read_class);
}

runtime::Task<RunReadEnd> RunReader::finish(const PlannedRun& run, StartedRead read, RunVisitor& visitor,
                                            ReadClass read_class) {
  runtime::Executor& executor = *(co_await runtime::this_context()).executor;
  bool is_second_try = false;
  while (true) {
    uint64_t from = read.from;
    uint64_t to = read.to;
    auto bytes = co_await objects_.finish(std::move(read));
    bool is_corrupt = !bytes && bytes.error().code == StoreErrc::kCorrupt;
    if (!bytes && !is_corrupt) {
      if (bytes.error().code == StoreErrc::kNotFound) co_return RunReadEnd::kMissing;
      complain(run, bytes.error().message);
      co_return RunReadEnd::kStorage;
    }
    if (bytes) {
      switch (visitor.visit(run.run, *bytes)) {
        case BatchAssembler::End::kRunDone:
          co_return RunReadEnd::kDone;
        case BatchAssembler::End::kFull:
          co_return RunReadEnd::kStopped;
        case BatchAssembler::End::kNeedMore:
          // More than asked for, or a run of small batches would be read in as many steps.
          read = start(executor, run, std::max(visitor.needed_to() - from, 2 * (to - from)), read_class);
          continue;
        case BatchAssembler::End::kCorrupt:
          break;
      }
    }
    corrupt_reads_.add();
    complain(run, bytes ? visitor.problem() : bytes.error().message);
    if (bytes) objects_.forget(run.object.id, *bytes);
    if (is_second_try) co_return RunReadEnd::kCorrupt;
    is_second_try = true;
    read = start(executor, run, to - from, read_class);
  }
}

void RunReader::complain(const PlannedRun& run, std::string_view problem) {
  logger_.limited(complaints_, runtime_.now(), LogLevel::kError, "a run cannot be read",
                  {{"problem", problem},
                   {"incarnation", run.object.id.incarnation},
                   {"object", run.object.id.number},
                   {"position", run.run.position},
                   {"base_offset", run.run.base_offset}});
}

}  // namespace varve::storage
