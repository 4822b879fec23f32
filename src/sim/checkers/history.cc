#include "sim/checkers/history.h"

#include <algorithm>
#include <iterator>

#include "protocol/records/record_iterator.h"

namespace varve::sim {
namespace {

using protocol::records::BatchView;
using protocol::records::kBatchHeaderBytes;

constexpr size_t kNumberBytes = 8;
constexpr size_t kDecodedBytesMax = 1 << 20;

// What the broker leaves alone, whatever the topic's settings.
bool is_same_content(const protocol::records::BatchHeader& a, const protocol::records::BatchHeader& b) {
  return a.batch_length == b.batch_length && a.last_offset_delta == b.last_offset_delta &&
         a.base_timestamp == b.base_timestamp && a.producer_id == b.producer_id &&
         a.producer_epoch == b.producer_epoch && a.base_sequence == b.base_sequence &&
         a.record_count == b.record_count && a.codec() == b.codec();
}

}  // namespace

Send& History::make_send(uint64_t number, int producer, std::string topic, PartitionIndex partition) {
  auto send = std::make_unique<Send>();
  send->number = number;
  send->producer = producer;
  send->topic = std::move(topic);
  send->partition = partition;
  Send& made = *send;
  sends_.emplace(made.number, std::move(send));
  return made;
}

void History::sending(Send& send, Uuid topic, uint64_t connection, uint64_t place) {
  send.sent_to.insert(topic);
  send.connection = connection;
  send.place = place;
  world_.trace("batch {} ({}/{}/{}, {} records) of producer {} goes to {}/{} of {} on connection {}",
               send.number, send.producer_id, send.epoch, send.first_sequence, send.records, send.producer,
               send.topic, send.partition, topic.to_string(), connection);
}

void History::acked(Send& send, PartitionKey at, Offset base_offset, const std::string& who) {
  if (base_offset.value() < 0) {
    send.promise = Promise::kUnknown;
    return;
  }
  send.promise = Promise::kAcked;
  send.at = at;
  send.base_offset = base_offset;
  send.acked_at = world_.now();
  Offset end = base_offset.plus(send.records);
  Offset& highest = acked_ends_[at];
  highest = std::max(highest, end);
  const Contents& known = contents(at);
  auto there = known.find(base_offset);
  findings_.require(there == known.end() || there->second.send == &send,
                    "{} acknowledged batch {} of producer {} at {} offset {}, where batch {} is", who,
                    send.number, send.producer, at.to_string(), base_offset,
                    there == known.end() ? 0 : there->second.send->number);
}

void History::gave_up(Send& send) {
  send.promise = send.may_be_stored ? Promise::kUnknown : Promise::kNotStored;
}

Offset History::acked_end(const PartitionKey& key) const {
  auto found = acked_ends_.find(key);
  return found == acked_ends_.end() ? Offset(0) : found->second;
}

void History::ask_deletion(const PartitionKey& key, Offset end) {
  DeletedRecords& deleted = deleted_[key];
  deleted.asked = std::max(deleted.asked, end);
}

void History::records_deleted(const PartitionKey& key, Offset log_start, const std::string& who) {
  DeletedRecords& deleted = deleted_[key];
  findings_.require(log_start >= deleted.acked && log_start <= deleted.asked,
                    "{} says that {} begins at {} after a deletion; {} was acknowledged, and {} asked for",
                    who, key.to_string(), log_start, deleted.acked, deleted.asked);
  deleted.acked = std::max(deleted.acked, log_start);
}

DeletedRecords History::deleted_records(const PartitionKey& key) const {
  auto found = deleted_.find(key);
  return found == deleted_.end() ? DeletedRecords() : found->second;
}

const History::Contents& History::contents(const PartitionKey& key) const {
  static const Contents kNothing;
  auto found = contents_.find(key);
  return found == contents_.end() ? kNothing : found->second;
}

std::optional<uint64_t> History::number_of(const BatchView& batch) {
  protocol::records::RecordIterator records(batch, scratch_, kDecodedBytesMax);
  auto first = records.next();
  if (!first || !*first || !(*first)->value || (*first)->value->size() < kNumberBytes) return std::nullopt;
  return load_be<uint64_t>((*first)->value->data());
}

void History::saw(const PartitionKey& key, const BatchView& batch, const std::string& who) {
  const protocol::records::BatchHeader& header = batch.header();
  auto where = [&] { return fmt::format("{} offset {}", key.to_string(), header.base_offset); };
  if (!batch.checksum_matches()) {
    findings_.add(fmt::format("{} serves a damaged batch at {}", who, where()));
    return;
  }
  Contents& known = contents_[key];
  auto there = known.find(header.base_offset);
  if (there != known.end()) {
    findings_.require(there->second.crc == header.crc, "{} serves another batch at {} than others did", who,
                      where());
    return;
  }
  std::optional<uint64_t> number = number_of(batch);
  auto found = number ? sends_.find(*number) : sends_.end();
  if (found == sends_.end()) {
    findings_.add(fmt::format("{} serves a batch at {} that nobody sent", who, where()));
    return;
  }
  Send& send = *found->second;
  check_bytes(send, key, batch, who);
  check_new_place(send, key, batch, who);
  known.emplace(header.base_offset, Placed{&send, send.records, header.crc});
}

void History::check_bytes(const Send& send, const PartitionKey& key, const BatchView& batch,
                          const std::string& who) {
  auto sent = BatchView::first_of(send.bytes.view());
  CHECK(sent);
  ByteView sent_payload = sent->payload();
  bool is_same =
      is_same_content(batch.header(), sent->header()) && std::ranges::equal(batch.payload(), sent_payload);
  const TopicLife* topic = topics_.find(key.topic);
  bool is_stamped = topic != nullptr && topic->stamps_append_time;
  is_same = is_same && batch.header().log_append_time() == is_stamped;
  if (!is_stamped) is_same = is_same && batch.header().crc == sent->header().crc;
  findings_.require(is_same, "{} serves batch {} of producer {} with other bytes than were sent", who,
                    send.number, send.producer);
}

void History::check_new_place(Send& send, const PartitionKey& key, const BatchView& batch,
                              const std::string& who) {
  Offset base = batch.header().base_offset;
  auto name = [&] {
    return fmt::format("batch {} of producer {} ({}/{}/{})", send.number, send.producer, send.producer_id,
                       send.epoch, send.first_sequence);
  };
  bool is_right_place = send.sent_to.contains(key.topic) && send.partition == key.partition;
  findings_.require(is_right_place, "{} serves {} in {}, where it was not sent", who, name(),
                    key.to_string());
  findings_.require(send.promise != Promise::kNotStored,
                    "{} serves {}, which its producer was told is not "
                    "stored",
                    who, name());
  auto [place, is_first] = places_.try_emplace({key, send.number}, base);
  findings_.require(is_first || !send.is_once, "{} serves {} twice in {}, at {} and {}", who, name(),
                    key.to_string(), place->second, base);
  bool is_elsewhere = send.promise == Promise::kAcked && send.at == key && send.base_offset != base;
  findings_.require(!is_elsewhere || !send.is_once,
                    "{} serves {} at offset {}, but it was acknowledged at {}", who, name(), base,
                    send.base_offset);
  // Batches do not overlap.
  const Contents& known = contents_[key];
  auto next = known.upper_bound(base);
  Offset end = base.plus(send.records);
  findings_.require(next == known.end() || end <= next->first, "{} serves {} at {}, over the next batch", who,
                    name(), base);
  if (next == known.begin()) return;
  auto before = std::prev(next);
  findings_.require(before->first.plus(before->second.records) <= base,
                    "{} serves {} at {}, over the batch before", who, name(), base);
}

}  // namespace varve::sim
