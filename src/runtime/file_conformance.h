// What every FileSystem must do while the power is on. Included by the test of each implementation:
//
//   INSTANTIATE_TEST_SUITE_P(Posix, FileConformance, testing::Values(FileCase{"posix", make}), file_case_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/file_system.h"

namespace varve::runtime {

class FileSystemUnderTest {
 public:
  virtual ~FileSystemUnderTest() = default;
  virtual FileSystem& files() = 0;
  // An empty folder that the test may fill.
  virtual std::string root() const = 0;
};

struct FileCase {
  std::string name;
  std::function<std::unique_ptr<FileSystemUnderTest>()> make;

  // For gtest, which would print its bytes.
  friend std::ostream& operator<<(std::ostream& out, const FileCase& self) { return out << self.name; }
};
inline std::string file_case_name(const testing::TestParamInfo<FileCase>& info) { return info.param.name; }

class FileConformance : public testing::TestWithParam<FileCase> {
 protected:
  void SetUp() override { world_ = GetParam().make(); }

  FileSystem& files() { return world_->files(); }
  std::string path(const std::string& name) const { return world_->root() + "/" + name; }

  std::unique_ptr<File> open(const std::string& name, OpenMode mode) {
    auto file = files().open(path(name), mode);
    EXPECT_TRUE(file) << name << ": " << file.error().message;
    return file ? std::move(*file) : nullptr;
  }
  FileErrc open_error(const std::string& name, OpenMode mode) {
    auto file = files().open(path(name), mode);
    EXPECT_FALSE(file) << name;
    return file ? FileErrc::kIo : file.error().code;
  }
  static void write(File& file, uint64_t offset, std::string_view text) {
    std::vector<ByteView> slices = {as_bytes(text)};
    EXPECT_TRUE(file.write_at(offset, slices));
  }
  static std::string read(File& file, uint64_t offset, size_t size) {
    std::vector<uint8_t> bytes(size);
    auto got = file.read_at(offset, bytes);
    EXPECT_TRUE(got);
    return std::string(as_text(ByteView(bytes).first(got ? *got : 0)));
  }
  void make_file(const std::string& name, std::string_view text) {
    auto file = open(name, OpenMode::kCreateNew);
    write(*file, 0, text);
  }
  std::string content(const std::string& name) { return read(*open(name, OpenMode::kRead), 0, 1000); }
  std::vector<std::string> names(const std::string& folder) {
    auto entries = files().list(path(folder));
    EXPECT_TRUE(entries);
    std::vector<std::string> found;
    if (entries) {
      for (const FolderEntry& entry : *entries) found.push_back(entry.name);
    }
    return found;
  }
  template <class T>
  static FileErrc error_of(const FileResult<T>& result) {
    EXPECT_FALSE(result);
    return result ? FileErrc::kIo : result.error().code;
  }

  std::unique_ptr<FileSystemUnderTest> world_;
};

TEST_P(FileConformance, ReadsBackWhatWasWritten) {
  auto file = open("a", OpenMode::kCreateNew);
  std::vector<ByteView> slices = {as_bytes("hello"), {}, as_bytes(" "), as_bytes("world")};
  EXPECT_TRUE(file->write_at(0, slices));
  EXPECT_EQ(read(*file, 0, 100), "hello world");
  EXPECT_EQ(read(*file, 6, 3), "wor");
  EXPECT_EQ(read(*file, 11, 3), "");
  EXPECT_EQ(read(*file, 1000, 3), "");
  write(*file, 6, "there");
  EXPECT_EQ(read(*file, 0, 100), "hello there");
  EXPECT_EQ(*file->size(), 11u);
  EXPECT_TRUE(file->sync());
  EXPECT_TRUE(files().sync_folder(path("")));
}

TEST_P(FileConformance, AGapBetweenWritesIsZeros) {
  auto file = open("a", OpenMode::kCreateNew);
  write(*file, 4, "x");
  EXPECT_EQ(read(*file, 0, 10), std::string("\0\0\0\0x", 5));
}

TEST_P(FileConformance, TruncateCutsAndGrowsWithZeros) {
  auto file = open("a", OpenMode::kCreateNew);
  write(*file, 0, "hello");
  EXPECT_TRUE(file->truncate(2));
  EXPECT_EQ(read(*file, 0, 10), "he");
  EXPECT_TRUE(file->truncate(4));
  EXPECT_EQ(read(*file, 0, 10), std::string("he\0\0", 4));
}

TEST_P(FileConformance, OpenModesSayWhatMustBeThere) {
  EXPECT_EQ(open_error("a", OpenMode::kRead), FileErrc::kNotFound);
  EXPECT_EQ(open_error("a", OpenMode::kReadWrite), FileErrc::kNotFound);
  EXPECT_EQ(open_error("no/a", OpenMode::kCreate), FileErrc::kNotFound);
  make_file("a", "one");
  EXPECT_EQ(open_error("a", OpenMode::kCreateNew), FileErrc::kExists);
  EXPECT_EQ(open_error("a/b", OpenMode::kCreate), FileErrc::kNotAFolder);
  auto again = open("a", OpenMode::kCreate);
  EXPECT_EQ(read(*again, 0, 10), "one") << "kCreate keeps what is there";
  write(*again, 3, " two");
  EXPECT_EQ(content("a"), "one two") << "handles see each other's writes";
  EXPECT_TRUE(files().make_folder(path("folder")));
  EXPECT_EQ(open_error("folder", OpenMode::kRead), FileErrc::kNotAFolder);
  EXPECT_EQ(open_error("folder", OpenMode::kReadWrite), FileErrc::kNotAFolder);
}

TEST_P(FileConformance, OfTwoLinksToOneNameTheFirstWins) {
  make_file("a", "a");
  make_file("b", "b");
  EXPECT_TRUE(files().link(path("a"), path("c")));
  EXPECT_EQ(error_of(files().link(path("b"), path("c"))), FileErrc::kExists);
  EXPECT_EQ(error_of(files().link(path("absent"), path("d"))), FileErrc::kNotFound);
  EXPECT_EQ(content("c"), "a");
  EXPECT_TRUE(files().remove(path("a")));
  EXPECT_EQ(content("c"), "a") << "the other name stays";
}

TEST_P(FileConformance, RenameReplaces) {
  make_file("a", "new");
  make_file("b", "old");
  auto old = open("b", OpenMode::kRead);
  EXPECT_TRUE(files().rename(path("a"), path("b")));
  EXPECT_EQ(content("b"), "new");
  EXPECT_EQ(read(*old, 0, 10), "old") << "an open file outlives its name";
  EXPECT_EQ(names(""), std::vector<std::string>{"b"});
  EXPECT_EQ(error_of(files().rename(path("a"), path("c"))), FileErrc::kNotFound);
  EXPECT_TRUE(files().make_folder(path("folder")));
  EXPECT_TRUE(files().rename(path("b"), path("folder/b")));
  EXPECT_EQ(content("folder/b"), "new");
}

TEST_P(FileConformance, FoldersAreMadeListedAndRemoved) {
  EXPECT_TRUE(files().make_folder(path("f")));
  EXPECT_EQ(error_of(files().make_folder(path("f"))), FileErrc::kExists);
  EXPECT_EQ(error_of(files().make_folder(path("no/f"))), FileErrc::kNotFound);
  EXPECT_TRUE(files().make_folder(path("f/g")));
  make_file("f/b", "12345");
  make_file("f/a", "");
  EXPECT_EQ(names("f"), (std::vector<std::string>{"a", "b", "g"}));
  auto entries = files().list(path("f"));
  ASSERT_TRUE(entries && entries->size() == 3);
  EXPECT_EQ((*entries)[1].size, 5u);
  EXPECT_FALSE((*entries)[1].is_folder);
  EXPECT_TRUE((*entries)[2].is_folder);
  EXPECT_EQ(error_of(files().list(path("no"))), FileErrc::kNotFound);
  EXPECT_EQ(error_of(files().list(path("f/a"))), FileErrc::kNotAFolder);
  EXPECT_EQ(error_of(files().remove_folder(path("f"))), FileErrc::kExists);
  EXPECT_EQ(error_of(files().remove_folder(path("f/a"))), FileErrc::kNotAFolder);
  EXPECT_EQ(error_of(files().remove(path("f/g"))), FileErrc::kNotAFolder);
  EXPECT_EQ(error_of(files().remove(path("f/no"))), FileErrc::kNotFound);
  EXPECT_TRUE(files().remove_folder(path("f/g")));
  EXPECT_TRUE(files().remove(path("f/a")));
  EXPECT_EQ(names("f"), std::vector<std::string>{"b"});
  EXPECT_TRUE(files().sync_folder(path("f")));
  EXPECT_EQ(error_of(files().sync_folder(path("no"))), FileErrc::kNotFound);
}

TEST_P(FileConformance, StatTellsNameSizeAndKind) {
  make_file("a", "12345");
  EXPECT_TRUE(files().make_folder(path("f")));
  auto file = files().stat(path("a"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->name, "a");
  EXPECT_EQ(file->size, 5u);
  EXPECT_FALSE(file->is_folder);
  auto folder = files().stat(path("f"));
  ASSERT_TRUE(folder);
  EXPECT_TRUE(folder->is_folder);
  EXPECT_EQ(error_of(files().stat(path("no"))), FileErrc::kNotFound);
}

TEST_P(FileConformance, MakeFoldersMakesParents) {
  EXPECT_TRUE(make_folders(files(), path("x/y/z")));
  EXPECT_TRUE(make_folders(files(), path("x/y/z"))) << "and is content with what is there";
  EXPECT_EQ(names("x/y"), std::vector<std::string>{"z"});
  make_file("x/file", "");
  EXPECT_EQ(error_of(make_folders(files(), path("x/file"))), FileErrc::kNotAFolder);
}

TEST_P(FileConformance, ALockExcludesAnotherOpenUntilItIsClosed) {
  auto first = open("lock", OpenMode::kCreate);
  auto second = open("lock", OpenMode::kCreate);
  EXPECT_TRUE(first->lock());
  EXPECT_EQ(error_of(second->lock()), FileErrc::kLocked);
  first.reset();
  EXPECT_TRUE(second->lock());
}

TEST_P(FileConformance, SpaceIsToldAndNotMoreFreeThanTotal) {
  auto space = files().space(path(""));
  ASSERT_TRUE(space);
  EXPECT_GT(space->total_bytes, 0u);
  EXPECT_LE(space->free_bytes, space->total_bytes);
}

}  // namespace varve::runtime
