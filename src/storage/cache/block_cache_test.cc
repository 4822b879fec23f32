#include "storage/cache/block_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>

#include "base/random.h"

namespace varve::storage {
namespace {

using metadata::ObjectId;
using object_store::StoreErrc;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kBlock = 1'024;
// Of an extent, besides its bytes, and of each slice of a written one.
constexpr size_t kOverhead = 256;
constexpr size_t kSliceOverhead = sizeof(Slice);

ObjectId object(uint64_t number) { return {Incarnation(1), ObjectNumber(number)}; }

// A cache, and bytes for it that say when they are let go. Who looks at them after that sees that they are spoilt.
class BlockCacheTest : public testing::Test {
 protected:
  void make(BlockCacheConfig config) {
    config_ = config;
    cache_.reset();
    metrics_ = std::make_unique<MetricRegistry>();
    gauge_ = &metrics_->gauge("varve_cache_bytes", "");
    memory_.clear();
    held_.clear();
    let_go_.clear();
    cache_ = std::make_unique<BlockCache>(config, *metrics_);
  }
  // Of one shard with room for so many blocks.
  void make_small(size_t blocks) {
    make({.bytes_max = blocks * (kBlock + kOverhead), .block_bytes = kBlock, .load_bytes_max = 4 * kBlock});
  }
  double cached_bytes() const { return gauge_->value(); }
  uint64_t counter(std::string name) { return metrics_->counter(name, "").value(); }

  Slice named_bytes(const std::string& name, size_t size) {
    uint8_t* bytes = memory_.emplace_back(std::vector<uint8_t>(size, fill_of(name))).data();
    held_.insert(name);
    std::shared_ptr<const void> owner(bytes, [this, name, size](uint8_t* at) {
      std::fill_n(at, size, uint8_t{0xdd});
      held_.erase(name);
      let_go_.push_back(name);
      EXPECT_LE(cached_bytes(), static_cast<double>(config_.bytes_max)) << "when " << name << " went";
    });
    return Slice(std::move(owner), ByteView(bytes, size));
  }
  static uint8_t fill_of(const std::string& name) { return static_cast<uint8_t>(name.back() % 64); }

  // Brings `size` bytes of a block into the cache, as a reader does whom nobody joins.
  void load(const std::string& name, ObjectId id, uint64_t block, size_t size = kBlock) {
    Claim claim = cache_->claim(id, block * kBlock, 1);
    ASSERT_THAT(claim.own_loads, SizeIs(1));
    ASSERT_EQ(claim.own_loads[0]->offset(), block * kBlock);
    cache_->loaded(claim.own_loads[0], named_bytes(name, size));
  }
  bool touch(ObjectId id, uint64_t block) {
    Claim claim = cache_->claim(id, block * kBlock, 1);
    bool is_here = claim.own_loads.empty();
    for (const auto& own : claim.own_loads) cache_->loaded(own, fail(StoreErrc::kTimeout, "only a look"));
    return is_here;
  }
  void write(const std::string& name, ObjectId id, size_t size, size_t capacity) {
    cache_->insert_written(id, {named_bytes(name, size)}, capacity);
  }
  static LoadResult result_of(const std::shared_ptr<BlockLoad>& load) {
    auto joined = load->join();
    EXPECT_TRUE(joined.is_set());
    return joined.wait().await_resume();
  }

  BlockCacheConfig config_;
  std::unique_ptr<MetricRegistry> metrics_;
  Gauge* gauge_ = nullptr;
  std::list<std::vector<uint8_t>> memory_;  // outlives whoever still points to it
  std::set<std::string> held_;
  std::vector<std::string> let_go_;
  std::unique_ptr<BlockCache> cache_;
};

TEST_F(BlockCacheTest, what_was_used_longest_ago_leaves_first) {
  make_small(3);
  load("a", object(1), 0);
  load("b", object(1), 1);
  load("c", object(2), 0);
  EXPECT_TRUE(touch(object(1), 0));
  load("d", object(3), 0);
  EXPECT_THAT(let_go_, ElementsAre("b"));
  EXPECT_TRUE(touch(object(2), 0));
  EXPECT_FALSE(touch(object(1), 1)) << "it is gone, and a failed look for it uses nothing";
  load("e", object(3), 1);
  EXPECT_THAT(let_go_, ElementsAre("b", "a"));
  write("f", object(4), kBlock, kBlock - kSliceOverhead);
  EXPECT_THAT(let_go_, ElementsAre("b", "a", "d"));
  load("g", object(5), 0);
  EXPECT_THAT(let_go_, ElementsAre("b", "a", "d", "c"));
  EXPECT_TRUE(touch(object(3), 1));
  load("h", object(5), 1);
  EXPECT_THAT(let_go_, ElementsAre("b", "a", "d", "c", "f")) << "written objects leave as loaded ones do";
}

TEST_F(BlockCacheTest, one_claim_uses_all_that_it_covers) {
  make_small(4);
  for (uint64_t block = 0; block < 3; ++block)
    load(std::string(1, static_cast<char>('a' + block)), object(1), block);
  load("z", object(2), 0);
  Claim claim = cache_->claim(object(1), kBlock / 2, 2 * kBlock);
  EXPECT_THAT(claim.parts, SizeIs(3));
  EXPECT_THAT(claim.own_loads, IsEmpty());
  EXPECT_EQ(counter("varve_cache_hits_total"), 3u);
  load("y", object(2), 1);
  EXPECT_THAT(let_go_, ElementsAre("z"));
}

TEST_F(BlockCacheTest, an_extent_larger_than_the_budget_is_served_and_not_kept_and_drives_nothing_out) {
  make_small(3);
  load("a", object(1), 0);
  double held = cached_bytes();
  Claim claim = cache_->claim(object(2), 0, 4 * kBlock);
  ASSERT_THAT(claim.own_loads, SizeIs(1));
  cache_->loaded(claim.own_loads[0], named_bytes("large", 4 * kBlock));
  LoadResult result = result_of(claim.own_loads[0]);
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)->size(), 4 * kBlock);
  EXPECT_FALSE(touch(object(2), 0));
  result = fail(StoreErrc::kTimeout, "");
  claim = {};
  EXPECT_THAT(let_go_, ElementsAre("large"));
  write("larger", object(3), 4 * kBlock, 4 * kBlock);
  EXPECT_THAT(let_go_, ElementsAre("large", "larger"));
  write("small, of a large frame", object(4), 10, 4 * kBlock);
  EXPECT_THAT(let_go_, SizeIs(3));
  EXPECT_TRUE(touch(object(1), 0));
  EXPECT_EQ(cached_bytes(), held);
}

TEST_F(BlockCacheTest, an_extent_as_large_as_the_budget_is_kept_alone) {
  make_small(3);
  load("a", object(1), 0);
  load("b", object(1), 1);
  write("whole", object(2), 10, 3 * (kBlock + kOverhead) - kOverhead - kSliceOverhead);
  EXPECT_THAT(let_go_, ElementsAre("a", "b"));
  EXPECT_EQ(cached_bytes(), static_cast<double>(config_.bytes_max));
  EXPECT_TRUE(touch(object(2), 0));
}

TEST_F(BlockCacheTest, an_object_larger_than_a_shard_is_not_kept) {
  make({.bytes_max = 40 * kMiB});
  write("a", object(1), 10, 21 * kMiB);
  EXPECT_THAT(let_go_, ElementsAre("a"));
  write("b", object(1), 10, 19 * kMiB);
  EXPECT_THAT(let_go_, ElementsAre("a"));
}

TEST_F(BlockCacheTest, shards_share_the_budget) {
  make({.bytes_max = 128 * kMiB, .shards = 8});
  double held_max = 0;
  for (uint64_t number = 1; number <= 1'000; ++number) {
    write(std::to_string(number), object(number), 10, 5 * kMiB);
    held_max = std::max(held_max, cached_bytes());
  }
  EXPECT_LE(held_max, 128 * kMiB);
  EXPECT_GE(held_max, 8 * 3 * 5 * kMiB) << "all of them are used";
}

TEST_F(BlockCacheTest, without_a_budget_nothing_is_kept) {
  make({.bytes_max = 0, .block_bytes = kBlock, .load_bytes_max = 4 * kBlock});
  load("a", object(1), 0);
  load("b", object(1), 0, 1);
  write("c", object(2), 1, 1);
  EXPECT_THAT(let_go_, ElementsAre("a", "b", "c"));
  EXPECT_EQ(cached_bytes(), 0);
  EXPECT_FALSE(touch(object(1), 0));
  EXPECT_FALSE(touch(object(2), 0));
}

TEST_F(BlockCacheTest, who_holds_a_slice_of_what_has_left_reads_on) {
  make_small(2);
  load("a", object(1), 0);
  std::vector<Slice> slices;
  cache_->claim(object(1), 100, 10).parts.at(0).extent->slice(100, 110, slices);
  load("b", object(2), 0);
  load("c", object(3), 0);
  EXPECT_FALSE(touch(object(1), 0));
  EXPECT_EQ(cached_bytes(), 2 * (kBlock + kOverhead));
  EXPECT_THAT(let_go_, IsEmpty());
  EXPECT_EQ(as_text(slices.at(0).view()), std::string(10, static_cast<char>(fill_of("a"))));
  slices.clear();
  EXPECT_THAT(let_go_, ElementsAre("a"));
}

TEST_F(BlockCacheTest, a_load_that_fails_tells_all_who_wait_and_leaves_nothing) {
  make_small(3);
  Claim first = cache_->claim(object(1), 0, 10);
  Claim second = cache_->claim(object(1), 5, 10);
  ASSERT_THAT(first.own_loads, SizeIs(1));
  EXPECT_THAT(second.own_loads, IsEmpty());
  EXPECT_EQ(second.parts.at(0).load, first.own_loads[0]);
  auto waiting = second.parts[0].load->join();
  EXPECT_FALSE(waiting.is_set());
  cache_->loaded(first.own_loads[0], fail(StoreErrc::kUnavailable, "down"));
  ASSERT_TRUE(waiting.is_set());
  EXPECT_EQ(waiting.wait().await_resume().error().code, StoreErrc::kUnavailable);
  EXPECT_EQ(result_of(first.own_loads[0]).error().code, StoreErrc::kUnavailable) << "also who asks late";
  EXPECT_EQ(cached_bytes(), 0);
  EXPECT_THAT(cache_->claim(object(1), 0, 10).own_loads, SizeIs(1)) << "the next asks again";
}

TEST_F(BlockCacheTest, what_was_found_corrupt_is_dropped_and_what_came_in_its_place_stays) {
  make_small(3);
  load("good", object(1), 0);
  load("bad", object(1), 1);
  std::shared_ptr<const Extent> bad = cache_->claim(object(1), kBlock, 1).parts.at(0).extent;
  cache_->drop(object(1), *bad);
  EXPECT_EQ(cached_bytes(), kBlock + kOverhead);
  EXPECT_TRUE(touch(object(1), 0));
  // Others who shared it find it corrupt too: while it is loaded anew, and after that.
  Claim again = cache_->claim(object(1), kBlock, 1);
  ASSERT_THAT(again.own_loads, SizeIs(1));
  cache_->drop(object(1), *bad);
  EXPECT_EQ(cache_->claim(object(1), kBlock, 1).parts.at(0).load, again.own_loads[0]);
  cache_->loaded(again.own_loads[0], named_bytes("better", kBlock));
  again = {};
  cache_->drop(object(1), *bad);
  EXPECT_TRUE(touch(object(1), 1));
  EXPECT_EQ(cached_bytes(), 2 * (kBlock + kOverhead));
  bad = nullptr;
  EXPECT_THAT(let_go_, ElementsAre("bad"));
}

TEST_F(BlockCacheTest, what_has_left_already_may_be_dropped) {
  make_small(1);
  load("a", object(1), 0);
  std::shared_ptr<const Extent> left = cache_->claim(object(1), 0, 1).parts.at(0).extent;
  load("b", object(2), 0);
  cache_->drop(object(1), *left);
  EXPECT_EQ(cached_bytes(), kBlock + kOverhead);
  EXPECT_TRUE(touch(object(2), 0));
}

TEST_F(BlockCacheTest, an_empty_load_leaves_nothing) {
  make_small(3);
  load("a", object(1), 0, 0);
  EXPECT_THAT(let_go_, ElementsAre("a"));
  EXPECT_EQ(cached_bytes(), 0);
}

TEST_F(BlockCacheTest, a_written_object_does_not_take_the_place_of_a_load) {
  make_small(3);
  Claim claim = cache_->claim(object(1), 0, 10);
  write("written", object(1), 10, 10);
  EXPECT_THAT(let_go_, ElementsAre("written"));
  cache_->loaded(claim.own_loads.at(0), named_bytes("loaded", 10));
  EXPECT_EQ(cached_bytes(), 10 + kOverhead);
  EXPECT_TRUE(touch(object(1), 0));
}

TEST_F(BlockCacheTest, written_objects_are_verified_and_loaded_ones_are_not) {
  make_small(3);
  load("loaded", object(1), 0);
  write("written", object(2), 10, 10);
  EXPECT_FALSE(cache_->claim(object(1), 0, 1).parts.at(0).extent->is_verified(0, 1));
  EXPECT_TRUE(cache_->claim(object(2), 0, 1).parts.at(0).extent->is_verified(0, 10));
}

// Claims of any ranges, of which some end soon and some late, some short and some badly.
TEST_F(BlockCacheTest, parts_of_any_claim_cover_it_and_no_two_loads_ask_for_the_same_bytes) {
  Random random(5);
  make_small(12);
  std::vector<std::shared_ptr<BlockLoad>> pending;
  auto end_one = [&] {
    size_t at = random.below(pending.size());
    std::shared_ptr<BlockLoad> own = pending[at];
    pending.erase(pending.begin() + static_cast<ptrdiff_t>(at));
    size_t size = random.chance(1, 4) ? random.below(own->size()) : own->size();
    if (random.chance(1, 8)) {
      cache_->loaded(own, fail(StoreErrc::kTimeout, ""));
    } else {
      cache_->loaded(own, named_bytes(std::to_string(own->offset()), size));
    }
  };
  for (int step = 0; step < 5'000; ++step) {
    uint64_t from = random.below(20 * kBlock);
    uint64_t to = from + 1 + random.below(6 * kBlock);
    Claim claim = cache_->claim(object(1), from, to - from);
    uint64_t reached = from;
    for (const ClaimedPart& part : claim.parts) {
      EXPECT_NE(part.extent == nullptr, part.load == nullptr);
      EXPECT_LE(part.extent ? part.extent->offset() : part.load->offset(), reached);
      uint64_t end = part.extent ? part.extent->end() : part.load->end();
      EXPECT_GT(end, reached);
      reached = end;
    }
    EXPECT_GE(reached, to);
    for (const auto& own : claim.own_loads) {
      EXPECT_LT(own->end(), to + kBlock) << "no further than its last block";
      EXPECT_LE(own->size(), config_.load_bytes_max);
      for (const auto& other : pending)
        EXPECT_TRUE(own->end() <= other->offset() || own->offset() >= other->end());
      pending.push_back(own);
    }
    claim = {};
    while (pending.size() > 5) end_one();
  }
}

// Against a plain model: what is held, in which order it leaves, and that the gauge tells it at every moment.
TEST_F(BlockCacheTest, holds_what_a_plain_list_by_use_would_hold) {
  struct Entry {
    std::string name;
    ObjectId id;
    uint64_t block;
    size_t charge;
  };
  Random random(9);
  make_small(8);
  std::list<Entry> model;  // the most recent in front
  auto keep = [&](Entry entry) {
    if (entry.charge > config_.bytes_max) return;
    model.push_front(std::move(entry));
    size_t sum = 0;
    for (const Entry& one : model) sum += one.charge;
    for (; sum > config_.bytes_max; model.pop_back()) sum -= model.back().charge;
  };
  for (int step = 0; step < 20'000; ++step) {
    std::string name = std::to_string(step);
    uint64_t choice = random.below(20);
    if (choice == 0) {
      size_t size = 1 + random.below(kBlock);
      size_t capacity = size + random.below(10 * kBlock);
      ObjectId id = object(100 + static_cast<uint64_t>(step));
      write(name, id, size, capacity);
      keep({name, id, 0, capacity + kSliceOverhead + kOverhead});
    } else {
      ObjectId id = object(random.below(4));
      uint64_t block = random.below(6);
      auto known = std::ranges::find_if(
          model, [&](const Entry& entry) { return entry.id == id && entry.block == block; });
      if (choice == 1) {
        EXPECT_EQ(touch(id, block), known != model.end());
        if (known != model.end()) model.splice(model.begin(), model, known);
      } else if (choice == 2 && known != model.end()) {
        cache_->drop(id, *cache_->claim(id, block * kBlock, 1).parts.at(0).extent);
        model.erase(known);
      } else if (known != model.end()) {
        EXPECT_TRUE(touch(id, block));
        model.splice(model.begin(), model, known);
      } else {
        size_t size = random.below(kBlock + 1);
        load(name, id, block, size);
        if (size > 0) keep({name, id, block, size + kOverhead});
      }
    }
    std::set<std::string> expected;
    size_t sum = 0;
    for (const Entry& entry : model) {
      expected.insert(entry.name);
      sum += entry.charge;
    }
    ASSERT_EQ(held_, expected) << "step " << step;
    ASSERT_EQ(cached_bytes(), static_cast<double>(sum)) << "step " << step;
  }
}

}  // namespace
}  // namespace varve::storage
