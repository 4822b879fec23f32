#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>

#include "base/ids.h"

namespace varve {
namespace {

// Values written by the reference implementation: state hashes are stored, so they may never change.
TEST(Hash, IsTheOneThatIsStored) {
  EXPECT_EQ(hash64(std::string_view("")), 0x2d06800538d394c2u);
  EXPECT_NE(hash64(std::string_view("varve")), hash64(std::string_view("varvf")));
  EXPECT_NE(hash64(std::string_view("varve"), 1), hash64(std::string_view("varve"), 2));
}

TEST(Hash, RendezvousSpreadsKeysAndMovesOnlyThoseOfTheOneThatLeft) {
  const std::vector<BrokerId> three = {BrokerId(1), BrokerId(2), BrokerId(3)};
  const std::vector<BrokerId> two = {BrokerId(3), BrokerId(1)};
  std::map<BrokerId, int> owned;
  for (uint64_t key = 0; key < 3000; ++key) {
    BrokerId before = *rendezvous_owner(key, three);
    BrokerId after = *rendezvous_owner(key, two);
    ++owned[before];
    if (before != BrokerId(2)) {
      EXPECT_EQ(before, after);
    }
  }
  for (BrokerId broker : three) EXPECT_GT(owned[broker], 800);
}

TEST(Hash, RendezvousDoesNotDependOnTheOrderOfCandidates) {
  const std::set<BrokerId> ordered = {BrokerId(7), BrokerId(0), BrokerId(5)};
  const std::vector<BrokerId> other = {BrokerId(5), BrokerId(7), BrokerId(0)};
  for (uint64_t key = 0; key < 100; ++key) {
    EXPECT_EQ(*rendezvous_owner(key, ordered), *rendezvous_owner(key, other));
  }
  const std::vector<BrokerId> none;
  EXPECT_EQ(rendezvous_owner(1, none), none.end());
}

}  // namespace
}  // namespace varve
