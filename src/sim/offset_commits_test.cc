// What committed offsets cost the metadata log: those that come close together share an entry.
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"
#include "sim/metadata_client_under_test.h"
#include "sim/object_store.h"

namespace varve::sim {
namespace {

using metadata::CommitOffsets;
using metadata::StateDriver;
using runtime::Task;

// One broker on a log that answers within a fifth of a millisecond, as a fast disk does.
struct OffsetCommits : testing::Test {
  OffsetCommits() {
    world_.run_for(5s);
    CHECK(broker_.started && *broker_.started);
    run(make_topic());
  }

  void run(Task<> task) {
    broker_.scope.spawn(broker_.node.process().io(0), "work", std::move(task));
    world_.run_for(1s);
  }
  Task<> make_topic() {
    co_await broker_.client.propose(
        metadata::CreateTopic{.id = StateDriver::topic_id(1), .name = "orders", .partitions = 1});
    partition_ = broker_.client.state().find_topic("orders")->partitions.front();
  }
  Task<> commit(std::string group) {
    MonotonicTime began = world_.now();
    CommitOffsets command{.group = std::move(group),
                          .offsets = {{partition_, 5, -1, ""}},
                          .owners = broker_.client.state().owners_version()};
    auto done = co_await broker_.client.propose(std::move(command));
    CHECK(done && done->front().verdict == metadata::CommandVerdict::kDone);
    took_max_ = std::max(took_max_, world_.now() - began);
    ++committed_;
  }
  // `count` groups commit, one every `pause`.
  Task<> commit_often(int count, Duration pause) {
    for (int i = 0; i < count; ++i) {
      broker_.scope.spawn(broker_.node.process().io(0), "commit", commit(fmt::format("group-{}", i)));
      co_await runtime::sleep_for(pause);
    }
  }
  // A commit that could wait, and something else right behind it; how long that took.
  Task<> commit_before_other_work(Duration& took) {
    co_await commit("first");
    broker_.scope.spawn(broker_.node.process().io(0), "commit", commit("second"));
    MonotonicTime began = world_.now();
    co_await broker_.client.propose(metadata::AllocateProducerIds{1});
    took = world_.now() - began;
  }
  size_t entries_with_offsets() const {
    size_t count = 0;
    for (const auto& record : log_.records()) {
      auto entry = metadata::decode_entry(record.bytes.view());
      CHECK(entry);
      count += std::ranges::any_of(entry->commands, [](const metadata::Command& command) {
        return std::holds_alternative<CommitOffsets>(command);
      });
    }
    return count;
  }

  static constexpr Delay kFast{.low = 20us, .high = 100us, .slow_per_mille = 0, .slow_high = 100us};

  World world_{{.seed = 8}};
  SimObjectStore store_{world_};
  SimMetadataLog log_{world_, {.one_way = kFast}};
  ClientUnderTest broker_{world_, log_, store_.client("broker0"), 0};
  PartitionHandle partition_;
  Duration took_max_{0};
  int committed_ = 0;
};

TEST_F(OffsetCommits, ThoseThatComeWithinTwoMillisecondsShareAnEntry) {
  run(commit_often(200, 100us));
  EXPECT_EQ(committed_, 200);
  EXPECT_LE(entries_with_offsets(), 12U) << "20 ms of commits";
  EXPECT_LE(took_max_, 4ms);
}

TEST_F(OffsetCommits, OneThatComesAloneWaitsForNobody) {
  run(commit_often(20, 10ms));
  EXPECT_EQ(committed_, 20);
  EXPECT_EQ(entries_with_offsets(), 20U);
  EXPECT_LE(took_max_, 1ms);
}

TEST_F(OffsetCommits, WhatCannotWaitTakesThemAlong) {
  Duration took{0};
  run(commit_before_other_work(took));
  EXPECT_EQ(committed_, 2);
  EXPECT_EQ(entries_with_offsets(), 2U);
  EXPECT_GT(took, 0ms);
  EXPECT_LE(took, 1ms);
}

}  // namespace
}  // namespace varve::sim
