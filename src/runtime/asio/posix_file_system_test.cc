#include "runtime/asio/posix_file_system.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/temporary_folder_testing.h"

namespace varve::runtime {
namespace {

class PosixFileSystemTest : public testing::Test {
 protected:
  std::string path(const std::string& name) { return root_ + "/" + name; }

  void write(const std::string& name, std::string_view text) {
    auto file = files_.open(path(name), OpenMode::kCreate);
    ASSERT_TRUE(file) << file.error().message;
    ByteView slices[] = {as_bytes(text)};
    ASSERT_TRUE((*file)->write_at(0, slices));
  }
  std::string read(const std::string& name) {
    auto file = files_.open(path(name), OpenMode::kRead);
    if (!file) return "no file";
    std::string text(1000, '\0');
    auto got = (*file)->read_at(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
    text.resize(got.value_or(0));
    return text;
  }

  TemporaryFolder folder_;
  const std::string& root_ = folder_.path();
  PosixFileSystem files_;
};

TEST_F(PosixFileSystemTest, WritesAllSlicesInOrderAndReadsShortOnlyAtTheEnd) {
  auto file = files_.open(path("a"), OpenMode::kCreateNew);
  ASSERT_TRUE(file);
  // More slices than one system call takes, some of them empty.
  std::string expected;
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back(i % 7 == 0 ? "" : std::to_string(i));
  std::vector<ByteView> slices;
  for (const std::string& text : texts) {
    slices.push_back(as_bytes(text));
    expected += text;
  }
  ASSERT_TRUE((*file)->write_at(3, slices));
  EXPECT_EQ(*(*file)->size(), expected.size() + 3);
  std::string got(expected.size() + 100, 'x');
  auto count = (*file)->read_at(3, {reinterpret_cast<uint8_t*>(got.data()), got.size()});
  ASSERT_TRUE(count);
  got.resize(*count);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(*(*file)->read_at(1'000'000, {reinterpret_cast<uint8_t*>(got.data()), 10}), 0u);
  ASSERT_TRUE((*file)->truncate(5));
  EXPECT_EQ(*(*file)->size(), 5u);
  EXPECT_TRUE((*file)->sync());
}

TEST_F(PosixFileSystemTest, OpensAsTheModeSays) {
  EXPECT_EQ(files_.open(path("a"), OpenMode::kRead).error().code, FileErrc::kNotFound);
  EXPECT_EQ(files_.open(path("a"), OpenMode::kReadWrite).error().code, FileErrc::kNotFound);
  write("a", "text");
  EXPECT_EQ(files_.open(path("a"), OpenMode::kCreateNew).error().code, FileErrc::kExists);
  EXPECT_TRUE(files_.open(path("a"), OpenMode::kCreate));
  EXPECT_EQ(read("a"), "text");
  EXPECT_EQ(files_.open(root_, OpenMode::kRead).error().code, FileErrc::kNotAFolder);
  EXPECT_EQ(files_.open(root_, OpenMode::kReadWrite).error().code, FileErrc::kNotAFolder);
  EXPECT_EQ(files_.open(path("a/b"), OpenMode::kRead).error().code, FileErrc::kNotAFolder);
}

TEST_F(PosixFileSystemTest, ALinkNeverReplacesAndARenameDoes) {
  write("a", "one");
  write("b", "two");
  EXPECT_EQ(files_.link(path("a"), path("b")).error().code, FileErrc::kExists);
  EXPECT_EQ(files_.link(path("none"), path("c")).error().code, FileErrc::kNotFound);
  ASSERT_TRUE(files_.link(path("a"), path("c")));
  EXPECT_EQ(read("c"), "one");
  ASSERT_TRUE(files_.rename(path("a"), path("b")));
  EXPECT_EQ(read("b"), "one");
  EXPECT_EQ(read("a"), "no file");
}

TEST_F(PosixFileSystemTest, FoldersAreMadeListedByNameAndRemovedWhenEmpty) {
  ASSERT_TRUE(files_.make_folder(path("d")));
  EXPECT_EQ(files_.make_folder(path("d")).error().code, FileErrc::kExists);
  EXPECT_EQ(files_.make_folder(path("x/y")).error().code, FileErrc::kNotFound);
  ASSERT_TRUE(make_folders(files_, path("d/e/f")));
  write("d/b", "12");
  write("d/a", "1");
  auto listed = files_.list(path("d"));
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 3u);
  EXPECT_EQ((*listed)[0].name, "a");
  EXPECT_EQ((*listed)[0].size, 1u);
  EXPECT_EQ((*listed)[1].name, "b");
  EXPECT_EQ((*listed)[1].size, 2u);
  EXPECT_EQ((*listed)[2].name, "e");
  EXPECT_TRUE((*listed)[2].is_folder);
  EXPECT_TRUE(files_.sync_folder(path("d")));
  EXPECT_EQ(files_.remove_folder(path("d")).error().code, FileErrc::kExists);
  EXPECT_TRUE(files_.remove(path("d/a")));
  EXPECT_EQ(files_.remove(path("d/a")).error().code, FileErrc::kNotFound);
  EXPECT_TRUE(files_.remove_folder(path("d/e/f")));
  EXPECT_EQ(files_.list(path("none")).error().code, FileErrc::kNotFound);
  EXPECT_EQ(files_.list(path("d/b")).error().code, FileErrc::kNotAFolder);
  auto found = files_.stat(path("d/b"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "b");
  EXPECT_EQ(found->size, 2u);
  EXPECT_FALSE(found->is_folder);
}

TEST_F(PosixFileSystemTest, ALockHoldsBetweenTwoOpensAndEndsWithTheFile) {
  auto first = files_.open(path("lock"), OpenMode::kCreate);
  auto second = files_.open(path("lock"), OpenMode::kCreate);
  ASSERT_TRUE((*first)->lock());
  EXPECT_EQ((*second)->lock().error().code, FileErrc::kLocked);
  first->reset();
  EXPECT_TRUE((*second)->lock());
}

TEST_F(PosixFileSystemTest, TellsThatTheDiskIsFull) {
  auto file = files_.open("/dev/full", OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  ByteView slices[] = {as_bytes("x")};
  EXPECT_EQ((*file)->write_at(0, slices).error().code, FileErrc::kNoSpace);
}

TEST_F(PosixFileSystemTest, TellsWhatIsDenied) {
  // Not even root may remove a file of /proc.
  EXPECT_EQ(files_.remove("/proc/self/status").error().code, FileErrc::kDenied);
}

TEST_F(PosixFileSystemTest, TellsTheFreeSpace) {
  auto space = files_.space(root_);
  ASSERT_TRUE(space);
  EXPECT_GT(space->free_bytes, 0u);
  EXPECT_GE(space->total_bytes, space->free_bytes);
  EXPECT_EQ(files_.space(path("none")).error().code, FileErrc::kNotFound);
}

}  // namespace
}  // namespace varve::runtime
