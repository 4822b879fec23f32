#include "storage/cache/extent.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace varve::storage {
namespace {

std::string text_of(const Extent& extent, uint64_t from, uint64_t to) {
  std::vector<Slice> slices;
  extent.slice(from, to, slices);
  std::string text;
  for (const Slice& slice : slices) {
    EXPECT_FALSE(slice.empty());
    text += as_text(slice.view());
  }
  return text;
}

TEST(ExtentTest, gives_any_part_of_its_slices_without_copies) {
  std::string bytes = "0123456789abcdef";
  std::vector<Slice> slices;
  for (auto [at, size] : {std::pair{0, 1}, {1, 0}, {1, 6}, {7, 2}, {9, 0}, {9, 7}}) {
    slices.push_back(
        Slice::unowned(as_bytes(bytes).subspan(static_cast<size_t>(at), static_cast<size_t>(size))));
  }
  Extent extent(100, slices, true);
  EXPECT_EQ(extent.offset(), 100u);
  EXPECT_EQ(extent.end(), 116u);
  EXPECT_EQ(extent.size(), 16u);
  for (size_t from = 0; from <= 16; ++from) {
    for (size_t to = from; to <= 16; ++to) {
      EXPECT_EQ(text_of(extent, 100 + from, 100 + to), bytes.substr(from, to - from));
    }
  }
  std::vector<Slice> part;
  extent.slice(102, 105, part);
  EXPECT_EQ(part.at(0).data(), reinterpret_cast<const uint8_t*>(bytes.data()) + 2);
}

TEST(ExtentTest, that_is_empty_ends_where_it_begins) {
  Extent extent(5, {Slice()}, false);
  EXPECT_EQ(extent.offset(), 5u);
  EXPECT_EQ(extent.size(), 0u);
  EXPECT_EQ(text_of(extent, 5, 5), "");
}

TEST(ExtentTest, of_written_bytes_is_verified_from_the_start) {
  Extent extent(10, {Slice::unowned(as_bytes("0123456789"))}, true);
  EXPECT_TRUE(extent.is_verified(10, 20));
  extent.mark_verified(12, 13);
  EXPECT_TRUE(extent.is_verified(10, 20));
}

TEST(ExtentTest, knows_exactly_the_bytes_that_were_marked) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    Extent extent(0, {Slice::unowned(as_bytes("0123456789012345678901234567890123456789"))}, false);
    std::vector<bool> marked(40);
    for (int step = 0; step < 12; ++step) {
      uint64_t from = random.below(40);
      uint64_t to = from + random.below(std::min<uint64_t>(8, 41 - from));
      extent.mark_verified(from, to);
      std::fill(marked.begin() + static_cast<ptrdiff_t>(from), marked.begin() + static_cast<ptrdiff_t>(to),
                true);
      for (size_t i = 0; i < 40; ++i) {
        bool is_all_marked = true;
        for (size_t end = i + 1; end <= 40; ++end) {
          is_all_marked = is_all_marked && marked[end - 1];
          ASSERT_EQ(extent.is_verified(i, end), is_all_marked) << i << " to " << end;
        }
      }
    }
  }
}

}  // namespace
}  // namespace varve::storage
