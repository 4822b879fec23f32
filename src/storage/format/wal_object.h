// The WAL object: one immutable upload with record batches of many partitions, grouped by partition, and a
// directory that says what lies where. Bytes: docs/formats/wal_object.md. No offsets are inside; the metadata log
// gives them. Building copies small batches only; reading is total on any input.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "metadata/state/entry.h"

namespace varve::storage {

inline constexpr uint64_t kWalMagic = 0x56415256'4557414c;         // "VARVEWAL"
inline constexpr uint64_t kWalTrailerMagic = 0x4c415745'56524156;  // "LAWEVRAV"
inline constexpr uint16_t kWalVersion = 1;
inline constexpr size_t kWalHeaderBytes = 72;
inline constexpr size_t kWalTrailerBytes = 24;
// Bits of a run's flags in the directory, and the least that a run and a producer batch take there.
inline constexpr uint8_t kWalTransactionalRun = 0x01;
inline constexpr uint8_t kWalLogAppendTimeRun = 0x02;
inline constexpr uint8_t kWalProducersRun = 0x04;
inline constexpr uint8_t kWalKnownRunFlags = kWalTransactionalRun | kWalLogAppendTimeRun | kWalProducersRun;
inline constexpr size_t kWalRunBytesMin = 8;
inline constexpr size_t kWalProducerBytesMin = 5;
// Batches of at least this size are referenced by the object's slices, smaller ones copied.
inline constexpr size_t kReferencedBatchBytesMin = 8 * 1024;

struct WalHeader {
  uint16_t shard = 0;  // reserved: one log has one shard
  Uuid log_id;
  Nonce nonce;
  metadata::ObjectId object;
  FenceEpoch epoch;  // current when the upload began
  WallTime created;  // ms, the uploader's clock; nothing is decided by it

  bool operator==(const WalHeader&) const = default;
};

// One batch on its way into an object.
struct WalBatch {
  Slice bytes;
  uint32_t records = 0;
  int64_t max_timestamp = -1;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch producer_epoch = kNoProducerEpoch;
  Sequence first_sequence = kNoSequence;
  bool is_copied = true;  // false: referenced, so the object keeps the batch's buffer alive
};

// One run on its way into an object. Either every batch has a producer id or none.
struct WalRun {
  PartitionHandle partition;
  Uuid topic;
  PartitionIndex index;
  bool is_transactional = false;
  bool is_log_append_time = false;
  std::vector<WalBatch> batches;  // at least one
};

struct BuiltObject {
  std::vector<Slice> slices;
  uint64_t bytes = 0;
  uint32_t crc = 0;                 // CRC-32C of the whole object
  std::vector<metadata::Run> runs;  // as given, with index and position; what the commit says
};

// `runs` in the order in which they are to lie, partition handles not falling. `applied` is the log position that
// the uploader had applied: with the directory it lets a rebuild drop what the log had refused.
BuiltObject build_wal_object(const WalHeader& header, LogPosition applied,
                             const std::vector<std::shared_ptr<const WalRun>>& runs);

enum class FormatErrc : uint8_t {
  kTooShort,
  kBadMagic,
  kBadVersion,
  kBadChecksum,
  kMalformed,  // contradicts itself
  kBadBatch,   // a batch contradicts the directory, or fails its CRC
};
using FormatError = ErrorOf<FormatErrc>;

struct WalTrailer {
  uint64_t directory_position = 0;
  uint32_t directory_bytes = 0;
  uint32_t directory_crc = 0;
};

struct WalDirectoryRun {
  Uuid topic;
  PartitionIndex index;
  metadata::Run run;

  bool operator==(const WalDirectoryRun&) const = default;
};

struct WalDirectory {
  LogPosition applied;
  std::vector<WalDirectoryRun> runs;

  bool operator==(const WalDirectory&) const = default;
};

struct WalObject {
  WalHeader header;
  WalDirectory directory;
};

// The first kWalHeaderBytes of an object.
Result<WalHeader, FormatError> parse_wal_header(ByteView bytes);
// The last kWalTrailerBytes of an object of `object_bytes`.
Result<WalTrailer, FormatError> parse_wal_trailer(ByteView bytes, uint64_t object_bytes);
// The bytes that the trailer names.
Result<WalDirectory, FormatError> parse_wal_directory(ByteView bytes, const WalTrailer& trailer,
                                                      const WalHeader& header);
// A whole object: header, trailer and directory.
Result<WalObject, FormatError> parse_wal_object(ByteView bytes);

// Checks every batch of a whole object against the directory and its own CRC. Gives one sentence for each
// problem, at most `problems_max`; none: the object is sound.
std::vector<std::string> verify_wal_batches(ByteView bytes, const WalObject& object,
                                            size_t problems_max = 100);

}  // namespace varve::storage
