// A snapshot's manifest and the keys of what it is made of: the format pages, the golden file, damage.
#include <gtest/gtest.h>

#include <sstream>

#include "base/crc32c.h"
#include "base/read_file_testing.h"
#include "metadata/client/snapshot_store.h"

namespace varve::metadata {
namespace {

// The hex digits of a text, comments from '#' on left out.
std::string hex_digits(const std::string& text) {
  std::string digits;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    for (char c : line.substr(0, line.find('#'))) {
      if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
    }
  }
  return digits;
}

// What is between the fences of the page's block that begins with `fence`.
std::string block_of(const std::string& page, const std::string& fence) {
  size_t begin = page.find(fence);
  if (begin == std::string::npos) return {};
  begin += fence.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

constexpr Nonce kNonce{0x1122334455667788};

LogIdentity example_log() {
  LogIdentity log;
  for (size_t i = 0; i < log.id.bytes.size(); ++i) log.id.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  log.generation = LogGeneration(1);
  return log;
}

// The second snapshot of a log: one chunk is the first one's.
SnapshotManifest example() {
  LogIdentity log = example_log();
  SnapshotManifest manifest{log, LogPosition(900), LogPosition(800), 0x0102030405060708, {}};
  ChunkName own{
      .epoch = FenceEpoch(3), .position = LogPosition(900), .nonce = kNonce, .index = 0, .hash = 0xaaaa};
  ChunkName older{
      .epoch = FenceEpoch(2), .position = LogPosition(800), .nonce = kNonce, .index = 5, .hash = 0xbbbb};
  manifest.chunks.push_back({chunk_key("default", log.id, own), 50, own.hash});
  manifest.chunks.push_back({chunk_key("default", log.id, older), 1'048'576, older.hash});
  return manifest;
}

TEST(SnapshotManifest, HasTheBytesOfTheGoldenFileAndOfThePage) {
  std::string bytes = to_hex(encode_manifest(example()));
  EXPECT_EQ(hex_digits(read_file("src/metadata/client/golden/snapshot_manifest_v1.hex")), bytes);
  std::string page = read_file("docs/formats/snapshot_manifest.md");
  EXPECT_EQ(hex_digits(block_of(page, "```hex\n")), bytes);
}

TEST(SnapshotManifest, TheKeysAreThoseThatTheFormatPageShows) {
  LogIdentity log = example_log();
  std::string keys =
      manifest_key("default", log.id, LogPosition(900), kNonce) + "\n" + example().chunks.front().key + "\n";
  std::string page = read_file("docs/formats/keys.md");
  EXPECT_NE(page.find("```\n" + keys + "```"), std::string::npos) << keys;
}

TEST(SnapshotManifest, AKeyIsReadBackAndNoOtherKeyIsTaken) {
  std::string key = manifest_key("default", example_log().id, LogPosition(0xfedcba9876543210), kNonce);
  auto found = parse_manifest_key("default", key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, key);
  EXPECT_EQ(found->position, LogPosition(0xfedcba9876543210));
  EXPECT_EQ(found->nonce, kNonce);

  std::string folder = manifests_prefix("default") + to_hex(example_log().id.bytes) + "/";
  std::string name = key.substr(folder.size());
  ASSERT_EQ(folder + name, key);
  std::string shouted = name;
  shouted[0] = 'F';
  for (const std::string& other :
       {std::string(), folder, folder.substr(0, folder.size() - 1), name, folder + "copy-of-" + name,
        folder + name + "0", folder + name + "/" + name, folder + name.substr(1),
        folder + "+" + name.substr(1), folder + shouted, "other/" + key, manifests_prefix("default") + name,
        manifests_prefix("default") + std::string(32, 'x') + "/" + name,
        manifests_prefix("default") + "copy-of-" + key.substr(manifests_prefix("default").size()),
        example().chunks.front().key}) {
    EXPECT_FALSE(parse_manifest_key("default", other)) << other;
  }
  for (size_t size = 0; size < key.size(); ++size) {
    EXPECT_FALSE(parse_manifest_key("default", key.substr(0, size))) << size;
  }
  EXPECT_FALSE(parse_manifest_key("other", key));
}

TEST(SnapshotManifest, RoundTripsAndRefusesDamage) {
  SnapshotManifest manifest = example();
  auto bytes = encode_manifest(manifest);
  auto read = decode_manifest(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->log, manifest.log);
  EXPECT_EQ(read->position, manifest.position);
  EXPECT_EQ(read->predecessor, manifest.predecessor);
  EXPECT_EQ(read->state_hash, manifest.state_hash);
  ASSERT_EQ(read->chunks.size(), 2u);
  EXPECT_EQ(read->chunks.back().key, manifest.chunks.back().key);
  EXPECT_EQ(read->chunks.back().bytes, manifest.chunks.back().bytes);
  EXPECT_EQ(read->chunks.back().hash, manifest.chunks.back().hash);
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= 1;
    EXPECT_FALSE(decode_manifest(damaged)) << i;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_manifest(ByteView(bytes).first(size))) << size;
  }
}

TEST(SnapshotManifest, OfALaterVersionOrAnotherShardIsRefused) {
  for (size_t at : {4, 6}) {
    auto bytes = encode_manifest(example());
    bytes[at] = 2;
    store_be(bytes.data() + bytes.size() - 4, crc32c(ByteView(bytes).first(bytes.size() - 4)));
    EXPECT_FALSE(decode_manifest(bytes)) << at;
  }
}

TEST(SnapshotManifest, AChunkWithoutAKeyIsRefused) {
  SnapshotManifest manifest = example();
  manifest.chunks.front().key.clear();
  EXPECT_FALSE(decode_manifest(encode_manifest(manifest)));
}

}  // namespace
}  // namespace varve::metadata
