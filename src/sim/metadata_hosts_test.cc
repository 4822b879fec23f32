// What the metadata client makes of a log that answers late, refuses or shows nothing.
#include <gtest/gtest.h>

#include "metadata/client/metadata_client.h"
#include "sim/metadata_client_under_test.h"
#include "sim/object_store.h"
#include "sim/run_task.h"

namespace varve::sim {
namespace {

using metadata::EntryKey;
using metadata::EntryRoom;
using metadata::LogEntry;
using metadata::LogErrc;
using metadata::LogIdentity;
using metadata::LogPage;
using metadata::LogResult;
using metadata::MetadataLog;
using runtime::Task;

// Stands before a log and does what it is told to.
class DisturbedLog final : public MetadataLog {
 public:
  explicit DisturbedLog(std::unique_ptr<MetadataLog> log) : log_(std::move(log)) {}

  bool lose_next_append = false;  // it gets nowhere, its caller no answer
  bool is_full = false;           // normal entries are refused
  bool has_no_reserve = false;    // all are
  bool is_blind = false;          // reads show nothing new
  uint64_t tail_ahead = 0;        // the tail is told to be so much further
  bool is_wrong = false;          // appends say that it is another log
  bool is_full_after_next = false;
  int calls = 0;

  Task<LogResult<LogIdentity>> open(Uuid new_id) override { return counted().open(new_id); }
  Task<LogResult<void>> begin_session(Nonce nonce) override { return counted().begin_session(nonce); }
  Task<LogResult<void>> end_session(Nonce nonce) override { return counted().end_session(nonce); }
  Task<LogResult<std::vector<Nonce>>> sessions() override { return counted().sessions(); }
  Task<LogResult<LogPosition>> append(EntryKey key, LogPosition applied, Slice entry,
                                      EntryRoom room) override {
    ++calls;
    if (is_wrong) co_return fail(LogErrc::kWrongLog, "another log");
    if (std::exchange(lose_next_append, false)) co_return fail(LogErrc::kUnknown, "no answer");
    if (is_full && (room == EntryRoom::kNormal || has_no_reserve)) co_return fail(LogErrc::kFull, "full");
    if (is_full_after_next) is_full = has_no_reserve = true;
    co_return co_await log_->append(key, applied, std::move(entry), room);
  }
  bool is_single_writer() const override { return log_->is_single_writer(); }
  Task<LogResult<LogPage>> read(LogPosition after, size_t max_bytes) override {
    ++calls;
    if (is_blind) co_return LogPage{};
    co_return co_await log_->read(after, max_bytes);
  }
  Task<LogResult<LogPosition>> tail() override {
    auto tail = co_await counted().tail();
    if (tail) tail = tail->plus(tail_ahead);
    co_return tail;
  }
  Task<void> wait_for_entries(LogPosition after, MonotonicTime deadline) override {
    ++calls;
    if (is_blind) co_return co_await pause();
    co_await log_->wait_for_entries(after, deadline);
  }
  Task<LogResult<void>> trim(LogPosition up_to) override { return counted().trim(up_to); }
  Task<void> close() override { return log_->close(); }

 private:
  static Task<> pause() { co_await runtime::sleep_for(100ms); }
  MetadataLog& counted() {
    ++calls;
    return *log_;
  }

  std::unique_ptr<MetadataLog> log_;
};

class MetadataHostsTest : public testing::Test {
 protected:
  // A broker behind a disturbed log.
  void start(int32_t id = 0) {
    broker_ =
        std::make_unique<ClientUnderTest>(world_, shared_log_, store_.client("broker0"), id, PlantedBugs{},
                                          Duration{}, [this](std::unique_ptr<MetadataLog> log) {
                                            auto disturbed = std::make_unique<DisturbedLog>(std::move(log));
                                            log_ = disturbed.get();
                                            if (is_wrong_from_the_start_) log_->is_wrong = true;
                                            return disturbed;
                                          });
    world_.run_for(5s);
    ASSERT_TRUE(broker_->started);
  }
  using Proposed = std::optional<metadata::ProposeResult>;
  static Task<> propose_into(ClientUnderTest& broker, metadata::Command command, Proposed& result) {
    result = co_await broker.client.propose(std::move(command));
  }
  // Proposed, and answered in its time.
  void propose(metadata::Command command, Proposed& result) {
    broker_->scope.spawn(broker_->node.process().io(0), "propose",
                         propose_into(*broker_, std::move(command), result));
  }

  World world_{{.seed = 9}};
  SimObjectStore store_{world_};
  SimMetadataLog shared_log_{world_};
  bool is_wrong_from_the_start_ = false;
  DisturbedLog* log_ = nullptr;
  std::unique_ptr<ClientUnderTest> broker_;
};

TEST_F(MetadataHostsTest, AnEntryOfUnknownFateDoesNotBlockABrokerWhoseLogIsFull) {
  start();
  log_->lose_next_append = true;
  log_->is_full = true;
  Proposed in_doubt;
  propose(metadata::AllocateProducerIds{}, in_doubt);
  world_.run_for(1s);
  Proposed freeing;
  propose(metadata::AdvanceGcFence{FenceEpoch(1)}, freeing);
  Proposed normal;
  propose(metadata::AllocateProducerIds{}, normal);
  world_.run_for(5s);
  ASSERT_TRUE(in_doubt);
  EXPECT_TRUE(in_doubt->has_value()) << in_doubt->error().message;
  ASSERT_TRUE(freeing);
  EXPECT_TRUE(freeing->has_value());
  ASSERT_TRUE(normal);
  ASSERT_FALSE(normal->has_value());
  EXPECT_EQ(normal->error().code, metadata::ProposeErrc::kFull);
}

// Sent once more, since it was not seen applied in time, it meets a full log: that is no answer about the first time.
TEST_F(MetadataHostsTest, AnEntryThatTheLogHasIsNotTakenBackByALaterRefusal) {
  start();
  log_->is_blind = true;
  log_->is_full_after_next = true;
  Proposed proposed;
  propose(metadata::AllocateProducerIds{}, proposed);
  world_.run_for(6s);
  EXPECT_FALSE(proposed) << "its fate is not known yet";
  log_->is_blind = false;
  world_.run_for(5s);
  ASSERT_TRUE(proposed);
  EXPECT_TRUE(proposed->has_value()) << proposed->error().message;
}

Task<> sync_into(ClientUnderTest& broker, std::optional<Result<LogPosition, metadata::SyncError>>& result) {
  result = co_await broker.client.sync(broker.node.process().now() + std::chrono::hours(1));
}
Task<> stop_into(ClientUnderTest& broker, bool& is_done) {
  co_await broker.client.stop();
  is_done = true;
}

TEST_F(MetadataHostsTest, ASyncThatWaitsForApplyIsAnsweredWhenTheBrokerStops) {
  start();
  // What others have appended is not seen here.
  log_->tail_ahead = 1000;
  std::optional<Result<LogPosition, metadata::SyncError>> synced;
  broker_->scope.spawn(broker_->node.process().io(0), "sync", sync_into(*broker_, synced));
  world_.run_for(10s);
  EXPECT_FALSE(synced);
  bool is_stopped = false;
  broker_->scope.spawn(broker_->node.process().io(0), "stop", stop_into(*broker_, is_stopped));
  world_.run_for(10s);
  EXPECT_TRUE(is_stopped);
  ASSERT_TRUE(synced) << "left to its deadline, an hour away";
  ASSERT_FALSE(synced->has_value());
  EXPECT_EQ(synced->error().code, metadata::SyncErrc::kStopping);
}

TEST_F(MetadataHostsTest, NothingGoesOnAfterAStartThatFailed) {
  is_wrong_from_the_start_ = true;
  start();
  EXPECT_FALSE(*broker_->started);
  int calls = log_->calls;
  world_.run_for(60s);
  EXPECT_EQ(log_->calls, calls);
  EXPECT_TRUE(shared_log_.sessions().empty()) << "nor does its session stay";
}

}  // namespace
}  // namespace varve::sim
