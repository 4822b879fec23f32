// The write and the read path together, over a store and a log that only take time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/storage/storage_world.h"

namespace varve::sim {
namespace {

using storage::AppendVerdict;
using storage::FetchErrc;
using storage::FetchRequest;
using storage::FoundOffset;
using testing::IsEmpty;
using testing::SizeIs;

class WriteReadTest : public testing::Test {
 protected:
  void make(size_t brokers = 1, StorageBrokerOptions options = {}) {
    sim_ = std::make_unique<StorageWorld>(1, brokers, std::move(options));
    sim_->start();
    partitions_ = sim_->create_topic("topic", 4);
  }
  Produced plain(size_t partition = 0, storage::TestBatch batch = {}) {
    return {.partition = partitions_.at(partition), .batch = std::move(batch)};
  }
  // Position and length of the batch as the producer made it, without what the broker fills in.
  static void expect_same_batch(const ReadBatch& read, const Slice& made) {
    ASSERT_EQ(read.bytes.size(), made.size());
    EXPECT_TRUE(std::equal(made.data() + 16, made.data() + made.size(), read.bytes.begin() + 16));
  }

  std::unique_ptr<StorageWorld> sim_;
  std::vector<PartitionHandle> partitions_;
};

TEST_F(WriteReadTest, a_produced_batch_is_read_back_with_its_offset_and_leader_epoch) {
  make();
  auto first = sim_->produce({plain(0, {.timestamps = {5, 6, 7}})});
  auto second = sim_->produce({plain(0, {.timestamps = {8}, .fill = 'w'})});
  ASSERT_EQ(first.at(0).verdict, AppendVerdict::kAccepted);
  EXPECT_EQ(first[0].base_offset, Offset(0));
  EXPECT_EQ(second.at(0).base_offset, Offset(3));
  auto fetched = sim_->fetch(partitions_[0], 0);
  EXPECT_EQ(fetched.error, FetchErrc::kNone);
  EXPECT_EQ(fetched.high_watermark, Offset(4));
  EXPECT_EQ(fetched.last_stable, Offset(4));
  EXPECT_EQ(fetched.log_start, Offset(0));
  auto batches = batches_of(fetched);
  ASSERT_THAT(batches, SizeIs(2));
  EXPECT_EQ(batches[0].base_offset, Offset(0));
  EXPECT_EQ(batches[1].base_offset, Offset(3));
  EXPECT_EQ(batches[0].leader_epoch, 1);
  expect_same_batch(batches[0], storage::make_batch({.timestamps = {5, 6, 7}}));
  expect_same_batch(batches[1], storage::make_batch({.timestamps = {8}, .fill = 'w'}));
}

TEST_F(WriteReadTest, the_broker_that_wrote_reads_without_a_get_and_another_with_one) {
  make(2);
  sim_->produce({plain(0), plain(1), plain(2)});
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(batches_of(sim_->fetch(partitions_[i], 0, 0)), SizeIs(1));
  EXPECT_EQ(sim_->broker(0).counter("varve_cache_misses_total"), 0u);
  sim_->sync(sim_->broker(1));
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(batches_of(sim_->fetch(partitions_[i], 0, 1)), SizeIs(1));
  EXPECT_EQ(sim_->broker(1).counter("varve_cache_misses_total"), 1u);
}

TEST_F(WriteReadTest, who_reads_on_is_read_ahead_for_but_not_beyond_a_share_of_the_cache) {
  for (size_t cache_bytes : {size_t{256} * kMiB, size_t{64} * kKiB}) {
    make(2, {.limits = {.cache_bytes_max = cache_bytes}});
    for (int i = 0; i < 30; ++i) sim_->produce({plain(0, {.value_bytes = 400})});
    StorageBroker& other = sim_->broker(1);
    sim_->sync(other);
    for (int64_t offset : {0, 1}) {
      FetchRequest request{.partitions = {{partitions_[0], Offset(offset), 1}}};
      EXPECT_THAT(batches_of(sim_->fetch_all(request, 1).at(0)), SizeIs(1));
    }
    sim_->pass(10s);
    uint64_t gets = other.counter("varve_cache_misses_total");
    if (cache_bytes > kMiB) EXPECT_EQ(gets, 30u);
    if (cache_bytes < kMiB) EXPECT_THAT(gets, testing::AllOf(testing::Ge(3u), testing::Le(6u)));
  }
}

TEST_F(WriteReadTest, large_batches_come_back_as_they_were) {
  make(2);
  storage::TestBatch large{.timestamps = {1, 2, 3}, .value_bytes = 900'000};
  auto produced = sim_->produce({plain(0, large), plain(0), plain(1, large)});
  for (const auto& result : produced) EXPECT_EQ(result.verdict, AppendVerdict::kAccepted);
  sim_->sync(sim_->broker(1));
  for (size_t broker = 0; broker < 2; ++broker) {
    FetchRequest request{.partitions = {{partitions_[0], Offset(0), 10'000'000}}};
    auto batches = batches_of(sim_->fetch_all(request, broker).at(0));
    ASSERT_THAT(batches, SizeIs(2));
    expect_same_batch(batches[0], storage::make_batch(large));
    EXPECT_EQ(batches[1].base_offset, Offset(3));
  }
}

TEST_F(WriteReadTest, a_fetch_begins_with_the_batch_that_holds_the_offset) {
  make();
  sim_->produce({plain(0, {.timestamps = {1, 2, 3}}), plain(0, {.timestamps = {4, 5, 6}})});
  auto batches = batches_of(sim_->fetch(partitions_[0], 4));
  ASSERT_THAT(batches, SizeIs(1));
  EXPECT_EQ(batches[0].base_offset, Offset(3));
}

TEST_F(WriteReadTest, the_first_batch_comes_whole_whatever_the_limits_say) {
  make();
  sim_->produce(
      {plain(0, {.value_bytes = 5'000}), plain(0, {.value_bytes = 5'000}), plain(1, {.value_bytes = 5'000})});
  FetchRequest request{.partitions = {{partitions_[2], Offset(0), 1},
                                      {partitions_[0], Offset(0), 1},
                                      {partitions_[1], Offset(0), 1}},
                       .bytes_max = 1};
  auto fetched = sim_->fetch_all(request);
  EXPECT_THAT(batches_of(fetched[0]), IsEmpty());
  EXPECT_THAT(batches_of(fetched[1]), SizeIs(1));
  EXPECT_THAT(batches_of(fetched[2]), IsEmpty());
}

TEST_F(WriteReadTest, limits_cut_between_batches) {
  make();
  size_t size = storage::make_batch({.value_bytes = 1'000}).size();
  std::vector<Produced> batches(10, plain(0, {.value_bytes = 1'000}));
  sim_->produce(batches);
  for (auto& batch : batches) batch.partition = partitions_[1];
  sim_->produce(batches);
  auto by_partition = static_cast<uint32_t>(3 * size + 10);
  FetchRequest request{
      .partitions = {{partitions_[0], Offset(2), by_partition}, {partitions_[1], Offset(0), by_partition}},
      .bytes_max = static_cast<uint32_t>(5 * size)};
  auto fetched = sim_->fetch_all(request);
  EXPECT_THAT(batches_of(fetched[0]), SizeIs(3));
  EXPECT_EQ(batches_of(fetched[0])[0].base_offset, Offset(2));
  EXPECT_GE(batches_of(fetched[1]).size(), 1u);
  EXPECT_LE(batches_of(fetched[1]).size(), 2u);
}

TEST_F(WriteReadTest, offsets_outside_the_log_are_out_of_range_and_the_end_is_not) {
  make();
  sim_->produce({plain(0, {.timestamps = {1, 2, 3, 4, 5}})});
  ASSERT_TRUE(sim_->run(sim_->broker(),
                        sim_->broker().client().propose(metadata::SetLogStart{partitions_[0], Offset(2)})));
  for (int64_t offset : {-1, 0, 1, 6, 1'000}) {
    EXPECT_EQ(sim_->fetch(partitions_[0], offset).error, FetchErrc::kOffsetOutOfRange) << offset;
  }
  EXPECT_EQ(sim_->fetch(partitions_[0], 5).error, FetchErrc::kNone);
  EXPECT_THAT(batches_of(sim_->fetch(partitions_[0], 5)), IsEmpty());
  EXPECT_THAT(batches_of(sim_->fetch(partitions_[0], 2)), SizeIs(1));
  EXPECT_EQ(sim_->fetch(PartitionHandle(99), 0).error, FetchErrc::kUnknownPartition);
}

TEST_F(WriteReadTest, an_offset_that_this_broker_has_not_heard_of_is_found_after_a_sync) {
  make(2);
  sim_->log().set_faults({.lag_max = 3s});
  auto produced = sim_->produce({plain(0), plain(0), plain(0)});
  ASSERT_EQ(produced[2].verdict, AppendVerdict::kAccepted);
  auto fetched = sim_->fetch(partitions_[0], 3, 1);
  EXPECT_EQ(fetched.error, FetchErrc::kNone);
  EXPECT_EQ(fetched.high_watermark, Offset(3));
}

TEST_F(WriteReadTest, a_waiting_fetch_is_answered_when_the_bytes_of_all_partitions_suffice) {
  make();
  size_t size = storage::make_batch({.value_bytes = 1'000}).size();
  FetchRequest request{.partitions = {{partitions_[0], Offset(0)}, {partitions_[1], Offset(0)}},
                       .bytes_min = static_cast<uint32_t>(2 * size),
                       .deadline = sim_->world().now() + 100s};
  std::optional<std::vector<storage::FetchedPartition>> answer;
  runtime::TaskScope scope;
  auto fetching = [](StorageBroker* broker, FetchRequest fetch_request,
                     std::optional<std::vector<storage::FetchedPartition>>* into) -> runtime::Task<> {
    into->emplace(co_await broker->fetcher().fetch(std::move(fetch_request)));
  };
  scope.spawn(sim_->broker().io(), "fetch", fetching(&sim_->broker(), request, &answer));
  sim_->produce({plain(0, {.value_bytes = 1'000}), plain(2, {.value_bytes = 1'000})});
  sim_->pass(5s);
  EXPECT_FALSE(answer);
  sim_->produce({plain(1, {.value_bytes = 1'000})});
  sim_->pass(1s);
  ASSERT_TRUE(answer);
  EXPECT_THAT(batches_of(answer->at(0)), SizeIs(1));
  EXPECT_THAT(batches_of(answer->at(1)), SizeIs(1));
}

TEST_F(WriteReadTest, a_waiting_fetch_is_answered_at_its_deadline_with_what_there_is) {
  make();
  sim_->produce({plain(0)});
  MonotonicTime begin = sim_->world().now();
  FetchRequest request{.partitions = {{partitions_[0], Offset(0)}, {partitions_[1], Offset(0)}},
                       .bytes_min = 1'000'000,
                       .deadline = begin + 500ms};
  auto fetched = sim_->fetch_all(request);
  EXPECT_THAT(batches_of(fetched[0]), SizeIs(1));
  EXPECT_GE(sim_->world().now() - begin, 500ms);
  EXPECT_LE(sim_->world().now() - begin, 510ms);
}

TEST_F(WriteReadTest, a_fetch_with_an_error_does_not_wait) {
  make();
  MonotonicTime begin = sim_->world().now();
  FetchRequest request{.partitions = {{partitions_[0], Offset(0)}, {PartitionHandle(99), Offset(0)}},
                       .bytes_min = 1,
                       .deadline = begin + 500s};
  EXPECT_EQ(sim_->fetch_all(request)[1].error, FetchErrc::kUnknownPartition);
  EXPECT_LE(sim_->world().now() - begin, 1s);
}

TEST_F(WriteReadTest, append_time_is_the_log_s_and_is_in_the_served_batch) {
  make();
  auto produced = sim_->produce(
      {{.partition = partitions_[0], .batch = {.timestamps = {5, 9}}, .is_log_append_time = true}});
  ASSERT_EQ(produced.at(0).verdict, AppendVerdict::kAccepted);
  EXPECT_GT(produced[0].append_time, 1'000'000);
  auto batches = batches_of(sim_->fetch(partitions_[0], 0));  // checks the CRC
  ASSERT_THAT(batches, SizeIs(1));
  EXPECT_TRUE(batches[0].header.log_append_time());
  EXPECT_EQ(batches[0].header.max_timestamp.value(), produced[0].append_time);
  EXPECT_EQ(sim_->produce({plain(0)}).at(0).append_time, -1);
}

TEST_F(WriteReadTest, idempotent_duplicates_get_their_first_offset_and_gaps_an_error) {
  make(2);
  auto batch = [&](int32_t sequence) {
    Produced produced = plain(0);
    produced.batch.producer_id = ProducerId(0);
    produced.batch.producer_epoch = ProducerEpoch(0);
    produced.batch.first_sequence = Sequence(sequence);
    return produced;
  };
  ASSERT_TRUE(sim_->run(sim_->broker(), sim_->broker().client().propose(metadata::AllocateProducerIds{})));
  EXPECT_EQ(sim_->produce({batch(0)}).at(0).base_offset, Offset(0));
  EXPECT_EQ(sim_->produce({batch(1), batch(2)}).at(1).base_offset, Offset(2));
  auto again = sim_->produce({batch(1)}, 1);
  EXPECT_EQ(again.at(0).verdict, AppendVerdict::kDuplicate);
  EXPECT_EQ(again[0].base_offset, Offset(1));
  MonotonicTime begin = sim_->world().now();
  EXPECT_EQ(sim_->produce({batch(9)}).at(0).verdict, AppendVerdict::kOutOfOrder);
  EXPECT_GE(sim_->world().now() - begin, 1s);
}

TEST_F(WriteReadTest, offsets_are_found_by_time_inside_batches) {
  make();
  sim_->produce({plain(0, {.timestamps = {1'000, 1'005, 1'009}}), plain(0, {.timestamps = {1'020, 1'010}})});
  sim_->produce({plain(0, {.timestamps = {1'015, 1'020}})});
  auto find = [&](int64_t timestamp) {
    FoundOffset found = sim_->list_offset(partitions_[0], timestamp);
    EXPECT_EQ(found.error, FetchErrc::kNone);
    return std::pair(found.offset.value(), found.timestamp);
  };
  EXPECT_EQ(find(0), std::pair(int64_t{0}, int64_t{1'000}));
  EXPECT_EQ(find(1'004), std::pair(int64_t{1}, int64_t{1'005}));
  EXPECT_EQ(find(1'009), std::pair(int64_t{2}, int64_t{1'009}));
  EXPECT_EQ(find(1'010), std::pair(int64_t{3}, int64_t{1'020}));
  EXPECT_EQ(find(1'021), std::pair(int64_t{-1}, int64_t{-1}));
  EXPECT_EQ(find(storage::kEarliestTimestamp), std::pair(int64_t{0}, int64_t{-1}));
  EXPECT_EQ(find(storage::kLatestTimestamp), std::pair(int64_t{7}, int64_t{-1}));
  EXPECT_EQ(find(storage::kMaxTimestamp), std::pair(int64_t{3}, int64_t{1'020}));
  EXPECT_EQ(find(storage::kEarliestLocalTimestamp), std::pair(int64_t{0}, int64_t{-1}));
  EXPECT_EQ(find(storage::kLatestTieredTimestamp), std::pair(int64_t{-1}, int64_t{-1}));
  // A log start in the middle of a batch hides what is before it.
  ASSERT_TRUE(sim_->run(sim_->broker(),
                        sim_->broker().client().propose(metadata::SetLogStart{partitions_[0], Offset(2)})));
  EXPECT_EQ(find(0), std::pair(int64_t{2}, int64_t{1'009}));
  EXPECT_EQ(find(storage::kEarliestTimestamp), std::pair(int64_t{2}, int64_t{-1}));
  FoundOffset empty = sim_->list_offset(partitions_[1], storage::kMaxTimestamp);
  EXPECT_EQ(empty.error, FetchErrc::kNone);
  EXPECT_EQ(empty.offset, Offset(-1));
  EXPECT_EQ(sim_->list_offset(PartitionHandle(99), 0).error, FetchErrc::kUnknownPartition);
}

TEST_F(WriteReadTest, offsets_by_time_follow_the_stamp_where_the_topic_stamps) {
  make();
  auto first = sim_->produce(
      {{.partition = partitions_[0], .batch = {.timestamps = {5, 9}}, .is_log_append_time = true}});
  sim_->pass(10s);
  auto second = sim_->produce(
      {{.partition = partitions_[0], .batch = {.timestamps = {5, 9}}, .is_log_append_time = true}});
  FoundOffset found = sim_->list_offset(partitions_[0], first.at(0).append_time + 1);
  EXPECT_EQ(found.offset, Offset(2));
  EXPECT_EQ(found.timestamp, second.at(0).append_time);
  EXPECT_EQ(sim_->list_offset(partitions_[0], 6).offset, Offset(0));
  EXPECT_EQ(sim_->list_offset(partitions_[0], storage::kMaxTimestamp).offset, Offset(2));
}

TEST_F(WriteReadTest, list_offsets_without_a_sync_in_time_says_no_progress) {
  make();
  sim_->log().set_down(true);
  EXPECT_EQ(sim_->list_offset(partitions_[0], storage::kLatestTimestamp).error, FetchErrc::kNoProgress);
}

TEST_F(WriteReadTest, a_fetch_at_the_end_of_a_broker_without_progress_is_told_so_and_data_is_still_served) {
  make();
  sim_->produce({plain(0)});
  sim_->log().set_down(true);
  sim_->pass(60s);
  EXPECT_EQ(sim_->fetch(partitions_[0], 1).error, FetchErrc::kNoProgress);
  EXPECT_THAT(batches_of(sim_->fetch(partitions_[0], 0)), SizeIs(1));
}

TEST_F(WriteReadTest, a_damaged_object_is_an_error_and_what_lies_before_the_damage_is_served) {
  make(2);
  sim_->produce({plain(0), plain(1)});
  auto keys = sim_->wal_keys();
  ASSERT_THAT(keys, SizeIs(1));
  sim_->store().damage(keys[0]);
  sim_->sync(sim_->broker(1));
  size_t errors = 0;
  for (size_t i = 0; i < 2; ++i) {
    auto fetched = sim_->fetch(partitions_[i], 0, 1);
    if (fetched.error == FetchErrc::kCorrupt) {
      ++errors;
      EXPECT_THAT(batches_of(fetched), IsEmpty());
    }
  }
  // One flipped bit is in one batch, or in header and directory, which nobody reads here.
  EXPECT_LE(errors, 1u);
  EXPECT_EQ(sim_->broker(1).counter("varve_corrupt_reads_total"), 2 * errors);
}

TEST_F(WriteReadTest, corrupt_and_short_reads_are_read_again_and_never_served) {
  make(2);
  for (int i = 0; i < 20; ++i) sim_->produce({plain(0, {.value_bytes = 2'000})});
  sim_->sync(sim_->broker(1));
  sim_->store().set_faults({.get_short = 100, .get_corrupt = 100});
  int64_t offset = 0;
  size_t errors = 0;
  while (offset < 20 && errors < 50) {
    FetchRequest request{.partitions = {{partitions_[0], Offset(offset), 5'000}}};
    auto fetched = sim_->fetch_all(request, 1).at(0);
    if (fetched.error != FetchErrc::kNone) {
      ++errors;
      continue;
    }
    for (const ReadBatch& batch : batches_of(fetched)) {
      ASSERT_EQ(batch.base_offset, Offset(offset++));
      expect_same_batch(batch, storage::make_batch({.value_bytes = 2'000}));
    }
  }
  EXPECT_EQ(offset, 20);
  EXPECT_GT(sim_->broker(1).counter("varve_corrupt_reads_total"), 0u);
}

TEST_F(WriteReadTest, a_missing_object_is_a_storage_error_after_a_new_plan) {
  make(2);
  sim_->produce({plain(0)});
  sim_->store().foreign_delete(sim_->wal_keys().at(0));
  sim_->sync(sim_->broker(1));
  EXPECT_EQ(sim_->fetch(partitions_[0], 0, 1).error, FetchErrc::kStorage);
  EXPECT_EQ(sim_->fetch(partitions_[1], 0, 1).error, FetchErrc::kNone);
}

runtime::Task<> list_into(storage::Fetcher& fetcher, storage::OffsetQuery query, MonotonicTime deadline,
                          std::optional<FoundOffset>& found) {
  found = (co_await fetcher.list_offsets({query}, false, deadline)).at(0);
}

TEST_F(WriteReadTest, an_object_that_goes_with_its_topic_during_a_look_up_is_no_storage_error) {
  make(2);
  sim_->produce({plain(0)});
  // The GET is there only seconds later.
  sim_->store().set_faults({.get = {.slow = 1000}});
  std::optional<FoundOffset> found;
  StorageBroker& reader = sim_->broker(1);
  runtime::TaskScope scope;
  scope.spawn(reader.io(), "look up",
              list_into(reader.fetcher(), {partitions_[0], 1}, sim_->world().now() + 60s, found));
  sim_->pass(50ms);
  ASSERT_FALSE(found);
  Uuid topic = sim_->broker().client().image()->find_topic("topic")->id;
  ASSERT_TRUE(sim_->run(sim_->broker(), sim_->broker().client().propose(metadata::DeleteTopic{topic})));
  sim_->store().foreign_delete(sim_->wal_keys().at(0));
  sim_->pass(60s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, FetchErrc::kUnknownPartition);
}

TEST_F(WriteReadTest, draining_stores_what_waits) {
  make();
  auto waiting = sim_->broker().ingest().submit(append_request({plain(0)}));
  EXPECT_TRUE(sim_->run(sim_->broker(), sim_->broker().ingest().drain(sim_->world().now() + 10s)));
  EXPECT_EQ(sim_->produce({plain(0)}).at(0).verdict, AppendVerdict::kStopping);
  EXPECT_THAT(batches_of(sim_->fetch(partitions_[0], 0)), SizeIs(1));
  EXPECT_TRUE(waiting.is_set());
}

TEST_F(WriteReadTest, a_drain_that_cannot_end_ends_at_its_deadline) {
  make();
  // Some seconds, up to 20: a store that does not answer may also say so at once.
  sim_->store().set_faults({.put = {.slow = 1000}});
  auto waiting = sim_->broker().ingest().submit(append_request({plain(0)}));
  MonotonicTime deadline = sim_->world().now() + 20ms;
  EXPECT_FALSE(sim_->run(sim_->broker(), sim_->broker().ingest().drain(deadline)));
  sim_->run(sim_->broker(), sim_->broker().stop());
  EXPECT_TRUE(waiting.is_set());
}

TEST_F(WriteReadTest, early_acknowledged_batches_are_stored_by_their_interval) {
  StorageBrokerOptions options;
  options.ingest.early_acks = true;
  make(1, options);
  auto produced = sim_->produce({plain(0)});
  EXPECT_EQ(produced.at(0).verdict, AppendVerdict::kBuffered);
  EXPECT_EQ(produced[0].base_offset, Offset(-1));
  EXPECT_THAT(sim_->wal_keys(), IsEmpty());
  sim_->pass(700ms);
  EXPECT_THAT(batches_of(sim_->fetch(partitions_[0], 0)), SizeIs(1));
}

TEST_F(WriteReadTest, puts_a_second_do_not_depend_on_the_number_of_partitions) {
  std::vector<size_t> puts;
  for (size_t partitions : {1, 100, 1'000}) {
    make();
    auto handles = sim_->create_topic("many", static_cast<uint32_t>(partitions));
    size_t before = sim_->wal_keys().size();
    MonotonicTime end = sim_->world().now() + 10s;
    std::vector<runtime::Completion<storage::AppendResults>> waiting;
    for (size_t i = 0; sim_->world().now() < end; ++i) {
      std::vector<Produced> request;
      for (size_t n = 0; n < 10; ++n)
        request.push_back({.partition = handles[(i * 10 + n) % handles.size()]});
      waiting.push_back(sim_->broker().ingest().submit(append_request(request)));
      sim_->pass(20ms);
    }
    sim_->pass(2s);
    for (const auto& completion : waiting) EXPECT_TRUE(completion.is_set());
    puts.push_back(sim_->wal_keys().size() - before);
  }
  EXPECT_LE(puts[0], 44u);  // 10 s of 250 ms, and the credits of the idle time before
  EXPECT_NEAR(static_cast<double>(puts[0]), static_cast<double>(puts[1]), 2);
  EXPECT_NEAR(static_cast<double>(puts[0]), static_cast<double>(puts[2]), 2);
}

}  // namespace
}  // namespace varve::sim
