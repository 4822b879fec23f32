// The identifiers of the system, each its own type.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/strong.h"

namespace varve {

// Kafka's own.
using BrokerId = Strong<int32_t, struct BrokerIdTag>;
using PartitionIndex = Strong<int32_t, struct PartitionIndexTag>;
using Offset = Strong<int64_t, struct OffsetTag>;
using ProducerId = Strong<int64_t, struct ProducerIdTag>;        // -1: none
using ProducerEpoch = Strong<int16_t, struct ProducerEpochTag>;  // -1: none
using Sequence = Strong<int32_t, struct SequenceTag>;            // -1: none; wraps from 2147483647 to 0

inline constexpr ProducerId kNoProducerId{-1};
inline constexpr ProducerEpoch kNoProducerEpoch{-1};
inline constexpr Sequence kNoSequence{-1};

// The metadata log's.
// Position of an entry in the metadata log; 0: before the first. Strictly rising, not dense (etcd revisions).
using LogPosition = Strong<uint64_t, struct LogPositionTag>;
// One registration of a broker: the position of its register entry (invariants 3 and 4).
using Incarnation = Strong<uint64_t, struct IncarnationTag>;
// Random, drawn by a broker for each registration; names its session and its objects before the incarnation is known.
using Nonce = Strong<uint64_t, struct NonceTag>;
// Number of an entry within an incarnation, from 1 without gaps.
using EntrySequence = Strong<uint64_t, struct EntrySequenceTag>;
// Raised only by AdvanceGcFence (invariant 7).
using FenceEpoch = Strong<uint64_t, struct FenceEpochTag>;
// Number of an object within an incarnation, from 1.
using ObjectNumber = Strong<uint64_t, struct ObjectNumberTag>;
// Dense number of a partition in the log; never reused.
using PartitionHandle = Strong<uint32_t, struct PartitionHandleTag>;
using FeatureLevel = Strong<uint32_t, struct FeatureLevelTag>;
// Raised when a log is restored from the bucket; shown to clients as the leader epoch.
using LogGeneration = Strong<uint32_t, struct LogGenerationTag>;

// 128 random bits: topic ids and log ids. In Kafka's text form: 22 characters of unpadded URL-safe base64.
struct Uuid {
  std::array<uint8_t, 16> bytes{};

  auto operator<=>(const Uuid&) const = default;
  bool is_zero() const { return *this == Uuid{}; }
  std::string to_string() const;
};

}  // namespace varve

template <>
struct std::hash<varve::Uuid> {
  size_t operator()(const varve::Uuid& id) const noexcept {
    size_t value = 0;
    for (uint8_t byte : id.bytes) value = value * 1099511628211u + byte;
    return value;
  }
};
