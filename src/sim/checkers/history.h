// History: every batch that a producer sent and what became of it, and every batch that anybody read.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/time.h"
#include "protocol/records/batch.h"
#include "protocol/records/payload_reader.h"
#include "sim/checkers/topic_book.h"

namespace varve::sim {

// A partition of one life of a topic.
struct PartitionKey {
  Uuid topic;
  PartitionIndex partition;

  auto operator<=>(const PartitionKey&) const = default;
  std::string to_string() const { return fmt::format("{}/{}", topic.to_string(), partition); }
};

enum class Promise : uint8_t {
  kOpen,       // the producer has not given up
  kAcked,      // must be readable at its offset
  kNotStored,  // every answer said so: must never be readable
  kUnknown,    // may be readable, at most once if `is_once`
};

// One batch of a producer.
struct Send {
  uint64_t number = 0;  // in the first record's value
  int producer = 0;
  std::string topic;
  PartitionIndex partition;
  uint32_t records = 0;
  bool is_once = true;  // no retry that might have doubled it
  // As last sent; those of an idempotent producer change while none has been sent, or all were refused.
  Slice bytes;
  ProducerId producer_id = kNoProducerId;
  ProducerEpoch epoch = kNoProducerEpoch;
  Sequence first_sequence = kNoSequence;

  // Lives of the topic it was sent to.
  std::set<Uuid> sent_to;
  uint64_t connection = 0;  // of the last try, and its place there
  uint64_t place = 0;
  bool may_be_stored = false;  // by some try that got no clear answer

  Promise promise = Promise::kOpen;
  PartitionKey at;  // where it was acknowledged
  Offset base_offset{-1};
  MonotonicTime acked_at;
};

// A batch that was read, wherever and by whomever; all who read there must read this.
struct Placed {
  Send* send = nullptr;
  uint32_t records = 0;
  uint32_t crc = 0;
};

// How far clients wanted the records of a partition deleted, and how far that was acknowledged: its log start is
// between the two.
struct DeletedRecords {
  Offset asked{0};
  Offset acked{0};
};

// Life: for one run.
class History {
 public:
  History(World& world, TopicBook& topics, Findings& findings)
      : world_(world), topics_(topics), findings_(findings) {}

  // For a record, at the beginning of its value. A batch has that of its first record.
  uint64_t next_number() { return ++last_number_; }
  Send& make_send(uint64_t number, int producer, std::string topic, PartitionIndex partition);
  void sending(Send& send, Uuid topic, uint64_t connection, uint64_t place);
  // Acknowledged at an offset, or with -1 where none is given (acks=0, early acknowledgement): then nothing
  // follows.
  void acked(Send& send, PartitionKey at, Offset base_offset, const std::string& who);
  void gave_up(Send& send);

  // The end of the highest batch acknowledged so far; 0 if none was.
  Offset acked_end(const PartitionKey& key) const;
  // Somebody asks for the deletion of all records below `end`.
  void ask_deletion(const PartitionKey& key, Offset end);
  // The deletion was acknowledged, and that the partition begins at `log_start` now.
  void records_deleted(const PartitionKey& key, Offset log_start, const std::string& who);
  DeletedRecords deleted_records(const PartitionKey& key) const;
  const std::map<uint64_t, std::unique_ptr<Send>>& sends() const { return sends_; }

  // The number in the first record's value; nullopt: no batch of ours.
  std::optional<uint64_t> number_of(const protocol::records::BatchView& batch);
  // `who` was served the batch, in an answer for this partition. Checks bytes, place and uniqueness.
  void saw(const PartitionKey& key, const protocol::records::BatchView& batch, const std::string& who);
  using Contents = std::map<Offset, Placed>;
  // What was ever read of a partition.
  const Contents& contents(const PartitionKey& key) const;
  const std::map<PartitionKey, Contents>& all_contents() const { return contents_; }

 private:
  void check_bytes(const Send& send, const PartitionKey& key, const protocol::records::BatchView& batch,
                   const std::string& who);
  void check_new_place(Send& send, const PartitionKey& key, const protocol::records::BatchView& batch,
                       const std::string& who);

  World& world_;
  TopicBook& topics_;
  Findings& findings_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, std::unique_ptr<Send>> sends_;
  std::map<PartitionKey, Offset> acked_ends_;
  std::map<PartitionKey, DeletedRecords> deleted_;
  std::map<PartitionKey, Contents> contents_;
  std::map<std::pair<PartitionKey, uint64_t>, Offset> places_;  // by send, the first
  protocol::records::DecodeScratch scratch_;
};

}  // namespace varve::sim
