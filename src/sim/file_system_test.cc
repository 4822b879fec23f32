#include "sim/file_system.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/file_conformance.h"

namespace varve::sim {
namespace {

using runtime::File;
using runtime::FileErrc;
using runtime::FileResult;
using runtime::OpenMode;

FileResult<void> write(File& file, uint64_t offset, std::string_view text) {
  std::vector<ByteView> slices = {as_bytes(text)};
  return file.write_at(offset, slices);
}

std::string content(SimFileSystem& files, const std::string& path) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return "(absent)";
  std::vector<uint8_t> bytes(100'000);
  size_t size = *(*file)->read_at(0, bytes);
  return std::string(as_text(ByteView(bytes).first(size)));
}

std::unique_ptr<File> create(SimFileSystem& files, const std::string& path) {
  return std::move(*files.open(path, OpenMode::kCreate));
}

class SimFilesUnderTest final : public runtime::FileSystemUnderTest {
 public:
  runtime::FileSystem& files() override { return files_; }
  std::string root() const override { return ""; }

 private:
  SimFileSystem files_{1};
};

// What a file holds after a power cut, over many draws.
std::set<std::string> outcomes(const std::function<void(SimFileSystem&)>& act) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimFileSystem files(seed);
    act(files);
    files.cut_power();
    seen.insert(content(files, "a"));
  }
  return seen;
}

TEST(SimFileSystem, WhatWasSyncedSurvivesAPowerCut) {
  auto seen = outcomes([](SimFileSystem& files) {
    auto file = create(files, "a");
    EXPECT_TRUE(write(*file, 0, "durable"));
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files.sync_folder(""));
  });
  EXPECT_EQ(seen, std::set<std::string>{"durable"});
}

TEST(SimFileSystem, AnUnsyncedFolderEntryMayBeLostThoughTheBytesWereSynced) {
  auto seen = outcomes([](SimFileSystem& files) {
    auto file = create(files, "a");
    EXPECT_TRUE(write(*file, 0, "durable"));
    EXPECT_TRUE(file->sync());
  });
  EXPECT_EQ(seen, (std::set<std::string>{"(absent)", "durable"}));
}

TEST(SimFileSystem, UnsyncedBytesAreDroppedTornAndReordered) {
  std::string old_bytes(3 * kSectorBytes, 'o');
  std::string new_bytes(3 * kSectorBytes, 'n');
  auto seen = outcomes([&](SimFileSystem& files) {
    auto file = create(files, "a");
    EXPECT_TRUE(write(*file, 0, old_bytes));
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files.sync_folder(""));
    EXPECT_TRUE(write(*file, 0, new_bytes));
  });
  std::string torn = new_bytes;
  for (size_t i = 0; i < kSectorBytes; ++i) torn[i] = 'o';
  EXPECT_TRUE(seen.contains(old_bytes));
  EXPECT_TRUE(seen.contains(new_bytes));
  EXPECT_TRUE(seen.contains(torn)) << "a later sector may be on the disk without an earlier one";
  EXPECT_EQ(seen.size(), 8u) << "each of three sectors is old or new";
}

TEST(SimFileSystem, AnAppendMayLeaveItsSizeWithoutItsBytesAndTheReverse) {
  auto seen = outcomes([](SimFileSystem& files) {
    auto file = create(files, "a");
    EXPECT_TRUE(write(*file, 0, std::string(kSectorBytes, 'o')));
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files.sync_folder(""));
    EXPECT_TRUE(write(*file, kSectorBytes, "n"));
  });
  std::string old_bytes(kSectorBytes, 'o');
  EXPECT_EQ(seen, (std::set<std::string>{old_bytes, old_bytes + "n", old_bytes + std::string(1, '\0')}));
}

TEST(SimFileSystem, EarlierWritesToASectorComeFirst) {
  auto seen = outcomes([](SimFileSystem& files) {
    auto file = create(files, "a");
    EXPECT_TRUE(write(*file, 0, "1"));
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files.sync_folder(""));
    EXPECT_TRUE(write(*file, 0, "2"));
    EXPECT_TRUE(write(*file, 0, "3"));
  });
  EXPECT_EQ(seen, (std::set<std::string>{"1", "2", "3"}));
}

TEST(SimFileSystem, ARenameInAFolderIsOneChange) {
  auto seen = outcomes([](SimFileSystem& files) {
    for (std::string name : {"a", "b"}) {
      auto file = create(files, name);
      EXPECT_TRUE(write(*file, 0, name == "a" ? "old" : "new"));
      EXPECT_TRUE(file->sync());
    }
    EXPECT_TRUE(files.sync_folder(""));
    EXPECT_TRUE(files.rename("b", "a"));
  });
  EXPECT_EQ(seen, (std::set<std::string>{"old", "new"}));
}

TEST(SimFileSystem, ARemovedEntryMayComeBack) {
  auto seen = outcomes([](SimFileSystem& files) {
    auto file = create(files, "a");
    EXPECT_TRUE(write(*file, 0, "x"));
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files.sync_folder(""));
    EXPECT_TRUE(files.remove("a"));
  });
  EXPECT_EQ(seen, (std::set<std::string>{"(absent)", "x"}));
}

TEST(SimFileSystem, AKilledProcessLosesHandlesAndLocksButNoBytes) {
  SimFileSystem files(1);
  auto file = create(files, "a");
  EXPECT_TRUE(write(*file, 0, "unsynced"));
  EXPECT_TRUE(file->lock());
  files.kill_process();
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(write(*file, 0, "dead"));
  EXPECT_EQ(content(files, "a"), "unsynced");
  auto next = create(files, "a");
  EXPECT_TRUE(next->lock());
  file.reset();
  auto third = create(files, "a");
  EXPECT_EQ(third->lock().error().code, FileErrc::kLocked) << "a dead handle frees nobody else's lock";
}

TEST(SimFileSystem, AfterAFailedSyncALaterSuccessSavesNothing) {
  bool was_lost = false;
  bool was_kept = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimFileSystem files(seed);
    auto file = create(files, "a");
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files.sync_folder(""));
    EXPECT_TRUE(write(*file, 0, "data"));
    files.set_faults({.sync_fails = 1000});
    EXPECT_EQ(file->sync().error().code, FileErrc::kIo);
    files.set_faults({});
    EXPECT_EQ(content(files, "a"), "data") << "it is still seen";
    EXPECT_TRUE(file->sync());
    files.cut_power();
    (content(files, "a") == "data" ? was_kept : was_lost) = true;
  }
  EXPECT_TRUE(was_lost && was_kept);
}

TEST(SimFileSystem, AFullDiskTakesWhatFitsAndHealsByRemoving) {
  SimFileSystem files(1);
  files.set_capacity(10);
  auto a = create(files, "a");
  EXPECT_TRUE(write(*a, 0, "123456"));
  EXPECT_EQ(files.space("")->free_bytes, 4u);
  auto b = create(files, "b");
  EXPECT_EQ(write(*b, 0, "123456").error().code, FileErrc::kNoSpace);
  EXPECT_EQ(content(files, "b"), "1234");
  EXPECT_TRUE(write(*a, 0, "654321")) << "writing over old bytes needs no space";
  a.reset();
  EXPECT_TRUE(files.remove("a"));
  EXPECT_TRUE(write(*b, 0, "123456"));
}

TEST(SimFileSystem, AFolderThatWasThereIsSyncedByTheNextWhoNeedsIt) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimFileSystem files(seed);
    files.set_faults({.sync_folder_fails = 1000});
    EXPECT_FALSE(runtime::make_folders(files, "/a/b"));
    files.set_faults({});
    EXPECT_TRUE(runtime::make_folders(files, "/a/b"));
    files.cut_power();
    EXPECT_TRUE(files.stat("/a/b")) << "seed " << seed;
    EXPECT_TRUE(files.make_folder("/c"));  // and a kill before the sync
    files.kill_process();
    EXPECT_TRUE(runtime::make_folders(files, "/c"));
    files.cut_power();
    EXPECT_TRUE(files.stat("/c")) << "seed " << seed;
  }
}

TEST(SimFileSystem, TellsWhatAPowerCutLost) {
  std::set<std::string> told;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimFileSystem files(seed);
    files.set_fault_observer([&](std::string_view fault) { told.emplace(fault); });
    auto file = create(files, "a");
    EXPECT_TRUE(files.sync_folder(""));
    EXPECT_TRUE(write(*file, 0, std::string(3 * kSectorBytes, 'x')));
    create(files, "b");
    files.cut_power();
    bool is_whole = content(files, "a").size() == 3 * kSectorBytes && content(files, "b") != "(absent)";
    if (told.empty()) EXPECT_TRUE(is_whole);
  }
  EXPECT_EQ(told, (std::set<std::string>{"disk.bytes_lost", "disk.bytes_torn", "disk.entries_lost"}));
}

TEST(SimFileSystem, ThePowerFailsAtAChosenCall) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimFileSystem files(seed);
    auto file = create(files, "a");
    EXPECT_TRUE(files.sync_folder(""));
    bool was_told = false;
    files.cut_power_after(2, [&] { was_told = true; });
    EXPECT_TRUE(write(*file, 0, "data"));
    EXPECT_FALSE(was_told);
    EXPECT_EQ(file->sync().error().code, FileErrc::kIo);
    EXPECT_TRUE(was_told && files.is_power_off());
    EXPECT_FALSE(file->sync());
    EXPECT_FALSE(files.list(""));
    files.cut_power();
    EXPECT_FALSE(files.is_power_off());
    seen.insert(content(files, "a"));
  }
  EXPECT_TRUE(seen.contains("data"));
  EXPECT_TRUE(seen.contains(""));
}

TEST(SimFileSystem, FaultsFailCallsAndAreTold) {
  SimFileSystem files(1);
  std::map<std::string, int, std::less<>> told;
  files.set_fault_observer([&](std::string_view fault) { ++told[std::string(fault)]; });
  files.set_faults({.read_fails = 500, .write_fails = 500, .sync_fails = 500, .sync_folder_fails = 500});
  auto file = create(files, "a");
  int failures = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<uint8_t> bytes(3);
    failures += !write(*file, 0, "abc");
    failures += !file->read_at(0, bytes);
    failures += !file->sync();
    failures += !files.sync_folder("");
  }
  EXPECT_EQ(told["file.read_fails"] + told["file.write_fails"] + told["file.sync_fails"] +
                told["file.sync_folder_fails"],
            failures);
  EXPECT_EQ(told.size(), 4u);
  files.set_faults({});
  EXPECT_TRUE(write(*file, 0, "abc"));
  EXPECT_TRUE(files.damage("a"));
  EXPECT_NE(content(files, "a"), "abc");
}

}  // namespace
}  // namespace varve::sim

namespace varve::runtime {
INSTANTIATE_TEST_SUITE_P(Sim, FileConformance,
                         testing::Values(FileCase{"sim",
                                                  [] { return std::make_unique<sim::SimFilesUnderTest>(); }}),
                         file_case_name);
}  // namespace varve::runtime
