// StrayWriter: a program that registers in the metadata log and writes what no broker writes: malformed entries, wrong
// sequences, commands that rules refuse. Apply has to pass over all of it, the same everywhere.
#pragma once

#include <memory>

#include "metadata/log/metadata_log.h"
#include "metadata/state/entry.h"
#include "runtime/task_scope.h"
#include "sim/checkers/log_audit.h"
#include "sim/metadata_log.h"
#include "sim/node.h"

namespace varve::sim {

// It registers as this one, and serves nobody.
inline constexpr BrokerId kStrayBroker{99};

// Life: of one run, on a node of its own. start() once; it ends its sessions when it has written `entries`.
class StrayWriter {
 public:
  StrayWriter(World& world, SimMetadataLog& log, LogAudit& audit);
  ~StrayWriter();

  void start(size_t entries);

 private:
  runtime::Task<> run(size_t entries);
  // False: the session is gone.
  runtime::Task<bool> register_as(Nonce nonce);
  // Registers anew and then goes on as who it was before.
  runtime::Task<bool> write_as_fenced();
  runtime::Task<bool> append(metadata::EntryKey key, Slice bytes);
  // What to write next, and whether it counts as the next entry of the incarnation.
  std::vector<uint8_t> draw_bytes(bool& counts);
  std::vector<uint8_t> draw_bad_entry();
  metadata::Entry next_entry() const;

  World& world_;
  LogAudit& audit_;
  Node node_;
  Random random_;
  std::unique_ptr<metadata::MetadataLog> log_;
  Nonce nonce_;
  std::vector<Nonce> sessions_;  // that may have been begun
  Incarnation incarnation_;
  EntrySequence last_;
  uint64_t keys_ = 0;
  runtime::TaskScope scope_;  // last: its frames use all of the above
};

// A command that some rule of apply refuses, chosen at random; `state` is one that the log led to.
metadata::Command draw_refused_command(const metadata::State& state, Incarnation sender, Random& random);

}  // namespace varve::sim
