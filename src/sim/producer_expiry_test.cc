// Producers and offsets that nobody hears of for long are forgotten.
#include <gtest/gtest.h>

#include "metadata/state/state_testing.h"
#include "sim/metadata_client_under_test.h"
#include "sim/object_store.h"

namespace varve::sim {
namespace {

using metadata::CommitObject;
using metadata::CreateTopic;
using metadata::StateDriver;
using runtime::Task;

class ProducerExpiry : public testing::Test {
 protected:
  static constexpr ProducerId kProducer{7};

  ProducerExpiry() {
    for (int32_t id : {0, 1}) {
      brokers_.push_back(
          std::make_unique<ClientUnderTest>(world_, log_, store_.client(fmt::format("broker{}", id)), id));
      world_.run_for(5s);
      CHECK(brokers_.back()->started && *brokers_.back()->started);
    }
  }
  Task<> make_topic(metadata::MetadataClient& client) {
    co_await client.propose(CreateTopic{.id = StateDriver::topic_id(1), .name = "orders", .partitions = 1});
    partition_ = client.state().find_topic("orders")->partitions.front();
  }
  Task<> write(metadata::MetadataClient& client) {
    StateDriver driver;
    CommitObject commit = driver.object_of(
        client.incarnation(),
        {{.partition = partition_, .producers = {StateDriver::batch(kProducer.value(), 0, written_)}}});
    commit.object.number = ObjectNumber(static_cast<uint64_t>(++written_));
    commit.epoch = client.state().fence_epoch();
    auto done = co_await client.propose(commit);
    CHECK(done);
  }
  void run(Task<> task) {
    brokers_[0]->scope.spawn(brokers_[0]->node.process().io(0), "work", std::move(task));
    world_.run_for(5s);
  }
  Task<> propose(metadata::MetadataClient& client, metadata::SetLimits limits) {
    CHECK(co_await client.propose(limits));
  }
  void wait(Duration time) { CHECK(world_.run_for(time) == RunEnd::kDone); }
  bool is_known(int broker) const {
    return brokers_[broker]
        ->client.state()
        .next_sequence(partition_, kProducer, ProducerEpoch(0))
        .has_value();
  }

  World world_{{.seed = 8}};
  SimObjectStore store_{world_};
  SimMetadataLog log_{world_};
  std::vector<std::unique_ptr<ClientUnderTest>> brokers_;
  PartitionHandle partition_;
  int32_t written_ = 0;
};

TEST_F(ProducerExpiry, AProducerIsForgottenOnceItWasSilentForTheTimeThatTheStateSays) {
  metadata::SetLimits limits;
  limits.producer_expiry_ms = 3 * 3'600'000;
  run(propose(brokers_[0]->client, limits));
  run(make_topic(brokers_[0]->client));
  run(write(brokers_[0]->client));
  ASSERT_TRUE(is_known(0) && is_known(1));
  wait(std::chrono::hours(2));
  run(write(brokers_[0]->client));
  wait(std::chrono::minutes(175));
  EXPECT_TRUE(is_known(0) && is_known(1)) << "it wrote less than three hours ago";
  wait(std::chrono::minutes(70));
  EXPECT_FALSE(is_known(0) || is_known(1));
}

class OffsetExpiry : public ProducerExpiry {
 protected:
  Task<> commit(metadata::MetadataClient& client, std::string group) {
    metadata::CommitOffsets command{.group = std::move(group),
                                    .offsets = {{partition_, 5, -1, ""}},
                                    .owners = client.state().owners_version()};
    auto done = co_await client.propose(std::move(command));
    CHECK(done && done->front().verdict == metadata::CommandVerdict::kDone);
  }
  Task<> propose_limits(metadata::MetadataClient& client, metadata::SetGroupLimits limits) {
    CHECK(co_await client.propose(limits));
  }
  const metadata::GroupView* group(int broker) const {
    return brokers_[broker]->client.state().find_group(group_);
  }
  // One that this broker owns.
  std::string own_group(int broker) const {
    std::string id = "g";
    while (brokers_[0]->client.state().group_owner(id) != BrokerId(broker)) id += "+";
    return id;
  }

  std::string group_;
};

TEST_F(OffsetExpiry, AGroupIsForgottenOnceNobodyCommittedForTheTimeThatTheStateSays) {
  run(propose_limits(brokers_[0]->client, {.offsets_retention_ms = 3 * 3'600'000}));
  run(make_topic(brokers_[0]->client));
  group_ = own_group(0);
  run(commit(brokers_[0]->client, group_));
  ASSERT_TRUE(group(0) != nullptr && group(1) != nullptr);
  wait(std::chrono::hours(2));
  run(commit(brokers_[0]->client, group_));
  wait(std::chrono::minutes(175));
  EXPECT_TRUE(group(0) != nullptr && group(1) != nullptr) << "a commit came less than three hours ago";
  wait(std::chrono::minutes(70));
  EXPECT_TRUE(group(0) == nullptr && group(1) == nullptr);
}

TEST_F(ProducerExpiry, NothingIsSaidWhileThereIsNobodyToForget) {
  run(make_topic(brokers_[0]->client));
  wait(std::chrono::hours(8));
  for (const auto& record : log_.records()) {
    auto entry = metadata::decode_entry(record.bytes.view());
    ASSERT_TRUE(entry);
    for (const metadata::Command& command : entry->commands) {
      EXPECT_FALSE(std::holds_alternative<metadata::ExpireProducers>(command)) << record.position.value();
      EXPECT_FALSE(std::holds_alternative<metadata::ExpireOffsets>(command)) << record.position.value();
    }
  }
}

}  // namespace
}  // namespace varve::sim
