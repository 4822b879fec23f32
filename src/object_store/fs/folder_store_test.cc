#include "object_store/fs/folder_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "object_store/store_conformance.h"
#include "runtime/asio/asio_runtime.h"
#include "runtime/asio/run_blocking.h"
#include "runtime/temporary_folder_testing.h"
#include "sim/node.h"
#include "sim/run_task.h"

namespace varve::object_store {
namespace {

using conformance::body_of;
using conformance::keys_under;
using conformance::text_at;
using runtime::run_blocking;
using runtime::Task;
using runtime::TemporaryFolder;

class PosixUnderTest final : public StoreUnderTest {
 public:
  PosixUnderTest() {
    auto opened = run_blocking(runtime_.io(0), store_.open());
    EXPECT_TRUE(opened) << opened.error().message;
  }
  ObjectStore& store() override { return store_; }
  void run(Task<> task) override { run_blocking(runtime_.io(0), std::move(task)); }

 private:
  TemporaryFolder folder_;
  runtime::AsioRuntime runtime_{{.io_threads = 1}};
  FolderStore store_{runtime_, {.root = folder_.path() + "/"}};
};

class SimUnderTest final : public StoreUnderTest {
 public:
  SimUnderTest() {
    run([](FolderStore* store) -> Task<> {
      auto opened = co_await store->open();
      EXPECT_TRUE(opened) << opened.error().message;
    }(&store_));
  }
  ObjectStore& store() override { return store_; }
  void run(Task<> task) override { sim::run_task(world_, node_.process().io(0), std::move(task)); }

 private:
  sim::World world_{{.seed = 1}};
  sim::Node node_{world_, {.host = "a"}};
  FolderStore store_{node_.process(), {.root = "/data/objects", .make_root = true, .fan_out = "ns/_wal/"}};
};

INSTANTIATE_TEST_SUITE_P(Folder, StoreConformance,
                         testing::Values(StoreCase{"posix",
                                                   [] { return std::make_unique<PosixUnderTest>(); }},
                                         StoreCase{"sim", [] { return std::make_unique<SimUnderTest>(); }}),
                         store_case_name);

class FolderStoreTest : public testing::Test {
 protected:
  StoreResult<void> open(FolderStore& store) { return run_blocking(runtime_.io(0), store.open()); }
  std::string start_error(const std::string& root) {
    FolderStore store(runtime_, {.root = root});
    auto opened = open(store);
    return opened ? "no error" : opened.error().message;
  }
  void run(Task<> task) { run_blocking(runtime_.io(0), std::move(task)); }

  size_t temporary_folders() {
    std::filesystem::directory_iterator entries(folder_.path() + "/%tmp");
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  TemporaryFolder folder_;
  runtime::AsioRuntime runtime_{{.io_threads = 1}};
};

TEST_F(FolderStoreTest, AStartThatCannotWorkSaysWhyAndWhere) {
  std::string missing = folder_.path() + "/missing";
  EXPECT_EQ(start_error(missing), fmt::format("the object store's folder {} does not exist", missing));
  std::string file = folder_.path() + "/file";
  std::ofstream(file) << "x";
  EXPECT_EQ(start_error(file), fmt::format("the object store's folder {} is a file", file));
  EXPECT_NE(start_error(file + "/below").find(file + "/below cannot be used"), std::string::npos);
  // Not even root can make a folder in /proc.
  std::string message = start_error("/proc");
  EXPECT_TRUE(message.starts_with("the object store's folder /proc cannot be written: ")) << message;
}

TEST_F(FolderStoreTest, MakesItsRootAndFanOutOnlyWhenAskedTo) {
  std::string root = folder_.path() + "/a/b";
  FolderStore store(runtime_, {.root = root, .make_root = true, .fan_out = "ns/_wal/"});
  auto opened = open(store);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(std::filesystem::is_directory(root + "/ns/_wal/00"));
  EXPECT_TRUE(std::filesystem::is_directory(root + "/ns/_wal/ff"));
  EXPECT_TRUE(run_blocking(runtime_.io(0), keys_under(store, "", "", 10)).empty());
}

TEST_F(FolderStoreTest, AKeyReadsLikeItsPath) {
  FolderStore store(runtime_, {.root = folder_.path()});
  ASSERT_TRUE(open(store));
  run(conformance::must_put(store, "default/orders/0/segment-00.kfs", "bytes"));
  std::ifstream file(folder_.path() + "/default/orders/0/segment-00.kfs");
  std::string text;
  file >> text;
  EXPECT_EQ(text, "bytes");
}

TEST_F(FolderStoreTest, RemovesWhatDeadProcessesLeftAndSparesTheLiving) {
  FolderStore living(runtime_, {.root = folder_.path()});
  ASSERT_TRUE(open(living));
  std::string dead = folder_.path() + "/%tmp/dead";
  std::filesystem::create_directory(dead);
  std::ofstream(dead + "/lock");
  std::ofstream(dead + "/17") << "half a body";
  std::filesystem::create_directory(folder_.path() + "/%tmp/without-lock");
  FolderStore second(runtime_, {.root = folder_.path()});
  ASSERT_TRUE(open(second));
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_EQ(temporary_folders(), 2u);
  run(conformance::must_put(living, "key", "still works"));
  EXPECT_EQ(run_blocking(runtime_.io(0), text_at(second, "key")), "still works");
}

TEST_F(FolderStoreTest, ForeignFilesAreNoObjects) {
  FolderStore store(runtime_, {.root = folder_.path()});
  ASSERT_TRUE(open(store));
  std::ofstream(folder_.path() + "/%zz") << "x";
  std::ofstream(folder_.path() + "/with\nbreak") << "x";
  std::filesystem::create_directory(folder_.path() + "/%41");  // the key "A" would not be escaped
  EXPECT_TRUE(run_blocking(runtime_.io(0), keys_under(store, "", "", 10)).empty());
}

Task<> names_in_the_way(FolderStore* store) {
  using conformance::code_of;
  co_await conformance::must_put(*store, "a/b", "1");
  EXPECT_EQ(code_of(co_await store->put_if_absent("a", body_of("2"))), StoreErrc::kBadRequest);
  EXPECT_EQ(code_of(co_await store->put("a", body_of("2"))), StoreErrc::kBadRequest);
  EXPECT_EQ(code_of(co_await store->put_if_absent("a/b/c", body_of("2"))), StoreErrc::kBadRequest);
  EXPECT_EQ(code_of(co_await store->put("a/b/c/d", body_of("2"))), StoreErrc::kBadRequest);
  std::string too_long(256, 'x');
  EXPECT_EQ(code_of(co_await store->put("a/" + too_long, body_of("2"))), StoreErrc::kBadRequest);
  EXPECT_EQ(co_await text_at(*store, "a/b"), "1");
  auto kept = co_await store->delete_many({"a"});
  EXPECT_TRUE(kept && kept->empty());
  EXPECT_EQ(co_await text_at(*store, "a/b"), "1") << "deleting a key that is a folder deletes nothing in it";
}

TEST_F(FolderStoreTest, AKeyCannotBeAFolderOfAnother) {
  FolderStore store(runtime_, {.root = folder_.path()});
  ASSERT_TRUE(open(store));
  run(names_in_the_way(&store));
}

Task<> put_into_removed_folder(FolderStore* store, std::string folder) {
  co_await conformance::must_put(*store, "p/1", "1");
  EXPECT_TRUE(co_await store->delete_many({"p/1"}));
  std::filesystem::remove(folder + "/p");
  co_await conformance::must_put(*store, "p/2", "2");
  EXPECT_EQ(co_await text_at(*store, "p/2"), "2");
}

TEST_F(FolderStoreTest, MakesAFolderAgainThatSomebodyRemoved) {
  FolderStore store(runtime_, {.root = folder_.path()});
  ASSERT_TRUE(open(store));
  run(put_into_removed_folder(&store, folder_.path()));
}

// Simulated disks for what a real one does not do on demand.
class SimFolderTest : public testing::Test {
 protected:
  void run(Task<> task) { sim::run_task(world_, node_.process().io(0), std::move(task)); }

  sim::World world_{{.seed = 5}};
  sim::Node node_{world_, {.host = "a"}};
};

Task<> must_open(FolderStore* store) {
  auto opened = co_await store->open();
  EXPECT_TRUE(opened) << opened.error().message;
}

Task<> put_until(FolderStore* store, Duration patience, Slice bytes) {
  MonotonicTime end = (co_await runtime::this_context()).executor->now() + patience;
  auto put = co_await runtime::with_deadline(end, store->put("data/late", {std::move(bytes)}));
  EXPECT_EQ(conformance::code_of(put), StoreErrc::kTimeout);
}

TEST(FolderStoreOnASlowDisk, APutThatIsGivenUpBeforeItsTurnHoldsNoMemoryAndWritesNothing) {
  sim::World world({.seed = 3});
  sim::NodeOptions options{.host = "a"};
  options.lanes[static_cast<size_t>(runtime::Lane::kDisk)] = {.low = 10s, .high = 10s, .slow_per_mille = 0};
  sim::Node node(world, options);
  FolderStore store(node.process(), {.root = "/store", .make_root = true});
  sim::run_task(world, node.process().io(0), must_open(&store));
  auto owner = std::make_shared<std::vector<uint8_t>>(1'000);
  sim::run_task(world, node.process().io(0), put_until(&store, 1s, Slice(owner, *owner)));
  EXPECT_EQ(owner.use_count(), 1);
  world.run_for(60s);
  EXPECT_FALSE(node.disk().stat("/store/data/late"));
}

Task<> fill_disk(FolderStore* store, sim::SimFileSystem* disk, std::vector<std::string>* keys) {
  std::string text(1'000'000, 'x');
  StoreErrc code = StoreErrc::kCorrupt;
  for (int i = 0; i < 1000 && code == StoreErrc::kCorrupt; ++i) {
    keys->push_back(fmt::format("data/{}", i));
    auto put = co_await store->put_if_absent(keys->back(), body_of(text));
    if (!put) code = put.error().code;
  }
  EXPECT_EQ(code, StoreErrc::kNoSpace);
  EXPECT_EQ(conformance::code_of(co_await store->head(keys->back())), StoreErrc::kNotFound);
  auto space = co_await store->space();
  EXPECT_TRUE(space && space->free_bytes >= 10'000'000 && space->free_bytes < 12'000'000)
      << space->free_bytes;
  co_await conformance::must_put(*store, "log/snapshot", text);
  EXPECT_TRUE(co_await store->delete_many({(*keys)[0], (*keys)[1], (*keys)[2], (*keys)[3]}));
  co_await conformance::must_put(*store, "data/after", "it heals by itself");
  // Even without the reserve's help an error of the disk is told as such, and nothing is left behind.
  disk->set_capacity(1'000'000);
  EXPECT_EQ(conformance::code_of(co_await store->put("log/large", body_of(text))), StoreErrc::kNoSpace);
  EXPECT_EQ(conformance::code_of(co_await store->head("log/large")), StoreErrc::kNotFound);
}

TEST_F(SimFolderTest, AFullDiskRefusesDataFirstKeepsRoomForTheLogAndHeals) {
  node_.disk().set_capacity(40'000'000);
  FolderStore store(
      node_.process(),
      {.root = "/store", .make_root = true, .reserve_bytes = 10'000'000, .reserve_exempt = "log/"});
  std::vector<std::string> keys;
  run(must_open(&store));
  run(fill_disk(&store, &node_.disk(), &keys));
}

Task<> put_with_failing_syncs(FolderStore* store, sim::SimFileSystem* disk) {
  co_await conformance::must_put(*store, "p/first", "1");
  disk->set_faults({.sync_folder_fails = 1000});
  EXPECT_EQ(conformance::code_of(co_await store->put_if_absent("p/a", body_of("a"))),
            StoreErrc::kUnavailable);
  disk->set_faults({});
  EXPECT_EQ(conformance::code_of(co_await store->head("p/a")), StoreErrc::kNotFound)
      << "its name was taken back";
  // An older entry may have been lost with the failed sync: "it is there" is no answer any more.
  EXPECT_EQ(conformance::code_of(co_await store->put_if_absent("p/first", body_of("1"))),
            StoreErrc::kUnavailable);
  co_await conformance::must_put(*store, "p/a", "a");
  disk->set_faults({.sync_fails = 1000});
  EXPECT_EQ(conformance::code_of(co_await store->put_if_absent("p/b", body_of("b"))),
            StoreErrc::kUnavailable);
  disk->set_faults({});
  EXPECT_EQ(conformance::code_of(co_await store->head("p/b")), StoreErrc::kNotFound);
}

TEST_F(SimFolderTest, APutWhoseSyncFailedHasFailed) {
  FolderStore store(node_.process(), {.root = "/store", .make_root = true});
  run(must_open(&store));
  run(put_with_failing_syncs(&store, &node_.disk()));
}

// What a workload was told, to compare with what is there after a power cut.
struct Told {
  std::map<std::string, std::string> acknowledged;  // puts
  std::map<std::string, std::string> tried;         // puts without an answer, or that failed
  std::set<std::string> deleted;                    // acknowledged deletes
  std::set<std::string> deleting;                   // without an answer
  uint64_t next = 0;
};

Task<> work(FolderStore* store, Random random, Told* told) {
  for (;;) {
    if (random.chance(1, 5) && !told->acknowledged.empty()) {
      auto victim =
          std::next(told->acknowledged.begin(), static_cast<long>(random.below(told->acknowledged.size())));
      std::string key = victim->first;
      told->deleting.insert(key);
      told->tried.insert(*victim);
      told->acknowledged.erase(victim);
      auto kept = co_await store->delete_many({key});
      if (kept && kept->empty()) {
        told->deleting.erase(key);
        told->deleted.insert(key);
      }
      continue;
    }
    std::string key =
        fmt::format("p{}/{}{}", random.below(3), random.chance(1, 4) ? "deep/er/" : "", told->next++);
    std::string text(random.below(3000), static_cast<char>('a' + random.below(26)));
    told->tried[key] = text;
    auto put = co_await store->put_if_absent(key, body_of(text));
    if (!put) continue;
    told->tried.erase(key);
    told->acknowledged[key] = text;
  }
}

Task<> check(FolderStore* store, Told* told) {
  std::vector<std::string> keys = co_await keys_under(*store, "", "", 1000);
  for (const std::string& key : keys) {
    EXPECT_FALSE(told->deleted.contains(key)) << key << " came back";
    std::string text = co_await text_at(*store, key);
    if (told->tried.contains(key)) EXPECT_EQ(text, told->tried[key]) << "unanswered puts are whole or absent";
  }
  for (const auto& [key, text] : told->acknowledged) {
    EXPECT_TRUE(co_await text_at(*store, key) == text) << key << " was lost";
  }
  // What is there now is durable for the next round only if it is put there again or looked at through a put.
  for (const auto& [key, text] : std::map(told->tried)) {
    if (std::ranges::binary_search(keys, key)) {
      auto put = co_await store->put_if_absent(key, body_of(text));
      EXPECT_EQ(put.error().code, StoreErrc::kPreconditionFailed);
      told->acknowledged[key] = text;
    }
    told->tried.erase(key);
    told->deleting.erase(key);
  }
}

size_t power_cuts(uint64_t seed, int rounds, const sim::FileFaults& faults) {
  sim::World world({.seed = seed});
  sim::Node node(world, {.host = "a"});
  Told told;
  for (int round = 0;; ++round) {
    FolderStore store(node.process(), {.root = "/store", .make_root = true});
    sim::run_task(world, node.process().io(0), must_open(&store));
    sim::run_task(world, node.process().io(0), check(&store, &told));
    if (round == rounds || testing::Test::HasFailure()) break;
    runtime::TaskScope scope;
    bool is_cut = false;
    node.disk().set_faults(faults);
    node.cut_power_after(1 + world.random().below(200), [&] {
      node.crash(sim::CrashKind::kPowerCut);
      is_cut = true;
    });
    for (size_t i = 0; i < 4; ++i) {
      scope.spawn(node.process().io(i % 2), "work", work(&store, world.random().fork(), &told));
    }
    EXPECT_EQ(world.run_until([&] { return is_cut; }), sim::RunEnd::kDone);
    node.disk().set_faults({});
    node.boot();
  }
  return told.acknowledged.size();
}

TEST(FolderStorePower, TwoHundredCutsLoseNothingAcknowledged) {
  size_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    acknowledged += power_cuts(seed, 5, {});
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(acknowledged, 500u);
}

TEST(FolderStorePower, CutsAmongFailingSyncsLoseNothingAcknowledged) {
  size_t acknowledged = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    acknowledged += power_cuts(seed, 2, {.write_fails = 20, .sync_fails = 20, .sync_folder_fails = 50});
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(acknowledged, 500u);
}

}  // namespace
}  // namespace varve::object_store
