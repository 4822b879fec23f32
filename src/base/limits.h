// The limits that bound what clients can use up, and those that a setting, a test or a plan of the simulator varies
// (invariant 11 of docs/architecture.md). Reaching one slows or refuses a client with an error; it never ends the
// process. A limit inside one mechanism, which nobody varies, stands beside its code. Names end with the unit and the
// qualifier.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace varve {

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;
inline constexpr size_t kGiB = 1024 * kMiB;

// Fixed by the Kafka protocol or by stored formats: never a setting.
inline constexpr size_t kTopicNameCharsMax = 249;
inline constexpr size_t kRecordBatchHeaderBytes = 61;

// A plain value: each broker holds its own copy, fixed at start. What apply is bound by is not here, since brokers
// may differ in these: it stands in the state (SetLimits in metadata/state/entry.h, invariant 2).
struct Limits {
  // Connections and requests.
  size_t frame_bytes_max = 100 * kMiB;  // Kafka: socket.request.max.bytes
  size_t connections_max = 10'000;
  size_t connections_per_address_max = 5'000;
  size_t requests_in_flight_per_connection_max = 64;
  size_t request_memory_bytes_max = 512 * kMiB;  // tickets of all frames that are being read or served
  Duration connection_idle_max = 10min;          // Kafka: connections.max.idle.ms

  // Record batches.
  size_t batch_bytes_max = 1'048'588;  // Kafka: max.message.bytes, header included
  size_t records_per_batch_max = 4'194'304;
  size_t decompressed_batch_bytes_max = 256 * kMiB;
  size_t decompression_ratio_max = 200;              // bites only above decompressed_batch_bytes_free
  size_t decompressed_batch_bytes_free = 16 * kMiB;  // any batch may expand to this
  size_t record_errors_listed_max = 1'000;           // indexes of bad records in one reply

  // Write path.
  size_t ingest_buffer_bytes_max = 4 * kMiB;    // a WAL object is sealed at this size
  size_t ingest_memory_bytes_max = 256 * kMiB;  // sealed or not, until the PUT and the entry are done
  size_t wal_object_batches_max = 65'536;
  size_t uploads_in_flight_max = 16;
  size_t chain_batches_waiting_max = 1'000;  // of one (producer, partition) or (connection, partition)
  Duration sequence_gap_hold_max = 1s;
  Duration object_attempt_max = 2s;
  Duration object_deadline_max = 30s;

  // Read path.
  size_t fetch_response_bytes_max = 55 * kMiB;  // Kafka: fetch.max.bytes
  size_t fetch_sessions_max = 1'000;            // Kafka: max.incremental.fetch.session.cache.slots
  size_t fetch_session_partitions_max = 100'000;
  size_t fetches_waiting_max = 10'000;
  size_t cache_bytes_max = 256 * kMiB;
  size_t object_reads_in_flight_max = 64;

  // Metadata log.
  size_t commit_bytes_max = 128 * kKiB;  // of one proposal of ingest; an entry holds several
  size_t proposals_waiting_max = 10'000;
  Duration sync_deadline_max = 8s;

  // Consumer groups.
  size_t groups_in_memory_max = 100'000;       // those with members, or that somebody joins
  size_t group_memory_bytes_max = 256 * kMiB;  // of them all; nobody brings or is given what exceeds it
  size_t groups_per_job_max = 1'000;           // that one job of the core looks through, while others wait
  size_t group_members_max = 5'000;  // whatever group.max.size says; and ids given out, of one group
  size_t group_member_bytes_max = 256 * kKiB;  // what a member brings with it, or is assigned

  // Topics: looked at before a proposal.
  size_t topics_max = 100'000;
  size_t partitions_per_topic_max = 10'000;

  // Observation.
  size_t metric_series_per_name_max = 5'000;
  Duration log_repeat_interval = 10s;  // of a rate-limited message

  // What a batch of this many compressed bytes may expand to.
  constexpr size_t decompressed_bytes_max(size_t compressed_bytes) const {
    if (compressed_bytes > decompressed_batch_bytes_max / decompression_ratio_max) {
      return decompressed_batch_bytes_max;
    }
    return std::clamp(compressed_bytes * decompression_ratio_max,
                      std::min(decompressed_batch_bytes_free, decompressed_batch_bytes_max),
                      decompressed_batch_bytes_max);
  }

  // So small that the simulator and the tests reach them with a handful of records.
  static constexpr Limits tiny() {
    Limits limits;
    limits.frame_bytes_max = 64 * kKiB;
    limits.connections_max = 16;
    limits.connections_per_address_max = 16;
    limits.requests_in_flight_per_connection_max = 3;
    limits.request_memory_bytes_max = 256 * kKiB;
    limits.batch_bytes_max = 4 * kKiB;
    limits.records_per_batch_max = 64;
    limits.decompressed_batch_bytes_max = 64 * kKiB;
    limits.decompression_ratio_max = 20;
    limits.decompressed_batch_bytes_free = 8 * kKiB;
    limits.record_errors_listed_max = 3;
    limits.ingest_buffer_bytes_max = 8 * kKiB;
    limits.ingest_memory_bytes_max = 32 * kKiB;
    limits.wal_object_batches_max = 8;
    limits.uploads_in_flight_max = 2;
    limits.chain_batches_waiting_max = 4;
    limits.fetch_response_bytes_max = 16 * kKiB;
    limits.fetch_sessions_max = 2;
    limits.fetch_session_partitions_max = 8;
    limits.fetches_waiting_max = 4;
    limits.cache_bytes_max = 32 * kKiB;
    limits.object_reads_in_flight_max = 2;
    limits.commit_bytes_max = 256;
    limits.proposals_waiting_max = 16;
    limits.groups_in_memory_max = 8;
    limits.group_memory_bytes_max = 64 * kKiB;
    limits.groups_per_job_max = 1;
    limits.group_members_max = 8;
    limits.group_member_bytes_max = 4 * kKiB;
    limits.topics_max = 16;
    limits.partitions_per_topic_max = 8;
    limits.metric_series_per_name_max = 8;
    return limits;
  }
};

}  // namespace varve
