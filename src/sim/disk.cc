#include "sim/disk.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace varve::sim {
namespace {

// What becomes of unsynced changes. Nothing and everything are drawn often: they are the cases in which whole
// files and whole transactions vanish or stay.
enum class Survival : uint8_t { kNothing, kEverything, kSome };

Survival draw_survival(Random& random) {
  switch (random.below(4)) {
    case 0:
      return Survival::kNothing;
    case 1:
      return Survival::kEverything;
    default:
      return Survival::kSome;
  }
}

void copy_range(const std::vector<uint8_t>& from, std::vector<uint8_t>& to, uint64_t begin, uint64_t end) {
  end = std::min<uint64_t>(end, std::min(from.size(), to.size()));
  if (begin < end) std::memcpy(to.data() + begin, from.data() + begin, end - begin);
}

uint64_t sector_of(uint64_t offset) { return offset / kSectorBytes; }
uint64_t sector_after(uint64_t end) { return (end + kSectorBytes - 1) / kSectorBytes; }

// Lets `settle` make `durable` what is left, and `seen` the same.
template <class Content>
Loss cut(Content& seen, Content& durable, bool has_unsynced, const std::function<void()>& settle) {
  // After a failed sync they differ with nothing left to write.
  if (!has_unsynced && durable == seen) return Loss::kNone;
  Content before = durable;
  settle();
  Loss loss = durable == seen ? Loss::kNone : durable == before ? Loss::kAll : Loss::kPart;
  seen = durable;
  return loss;
}

}  // namespace

size_t DiskFile::read(uint64_t offset, MutableByteView into) const {
  if (offset >= seen_.size()) return 0;
  size_t size = std::min<uint64_t>(into.size(), seen_.size() - offset);
  std::memcpy(into.data(), seen_.data() + offset, size);
  return size;
}

void DiskFile::write(uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  if (seen_.size() < offset + bytes.size()) seen_.resize(offset + bytes.size());
  std::memcpy(seen_.data() + offset, bytes.data(), bytes.size());
  unsynced_.push_back({offset, {bytes.begin(), bytes.end()}, false, seen_.size()});
}

void DiskFile::truncate(uint64_t size) {
  if (size == seen_.size()) return;
  seen_.resize(size);
  unsynced_.push_back({size, {}, true, size});
}

void DiskFile::sync() {
  durable_.resize(seen_.size());
  for (const Change& change : unsynced_) {
    uint64_t begin = sector_of(change.offset) * kSectorBytes;
    uint64_t end =
        change.is_truncate ? seen_.size() : sector_after(change.offset + change.bytes.size()) * kSectorBytes;
    copy_range(seen_, durable_, begin, end);
  }
  unsynced_.clear();
}

void DiskFile::apply_within(const Change& change, uint64_t sector, std::vector<uint8_t>& image) {
  uint64_t sector_begin = sector * kSectorBytes;
  uint64_t sector_end = std::min<uint64_t>(sector_begin + kSectorBytes, image.size());
  if (change.is_truncate) {
    uint64_t begin = std::max(sector_begin, change.size_after);
    if (begin < sector_end) std::memset(image.data() + begin, 0, sector_end - begin);
    return;
  }
  uint64_t begin = std::max(sector_begin, change.offset);
  uint64_t end = std::min(sector_end, change.offset + change.bytes.size());
  if (begin < end) {
    std::memcpy(image.data() + begin, change.bytes.data() + (begin - change.offset), end - begin);
  }
}

void DiskFile::settle_by_sector(Random& random) {
  uint64_t extent = durable_.size();
  for (const Change& change : unsynced_) extent = std::max(extent, change.size_after);
  std::map<uint64_t, std::vector<const Change*>> by_sector;
  for (const Change& change : unsynced_) {
    uint64_t end = change.is_truncate ? extent : change.offset + change.bytes.size();
    for (uint64_t sector = sector_of(change.offset); sector < sector_after(end); ++sector) {
      by_sector[sector].push_back(&change);
    }
  }
  uint64_t sizes_kept = random.below(unsynced_.size() + 1);
  uint64_t size = sizes_kept == 0 ? durable_.size() : unsynced_[sizes_kept - 1].size_after;
  durable_.resize(extent);
  for (const auto& [sector, changes] : by_sector) {
    uint64_t kept = random.below(changes.size() + 1);
    for (uint64_t i = 0; i < kept; ++i) apply_within(*changes[i], sector, durable_);
  }
  durable_.resize(size);
}

void DiskFile::settle(Random& random) {
  if (unsynced_.empty()) return;
  switch (draw_survival(random)) {
    case Survival::kNothing:
      break;
    case Survival::kEverything:
      sync();
      break;
    case Survival::kSome:
      settle_by_sector(random);
      break;
  }
  unsynced_.clear();
}

Loss DiskFile::cut_power(Random& random) {
  lock_holder = 0;
  return cut(seen_, durable_, !unsynced_.empty(), [&] { settle(random); });
}

bool DiskFile::damage(Random& random) {
  if (seen_.empty()) return false;
  uint64_t at = random.below(seen_.size());
  uint8_t bit = static_cast<uint8_t>(1u << random.below(8));
  seen_[at] ^= bit;
  if (at < durable_.size()) durable_[at] = seen_[at];
  return true;
}

std::shared_ptr<DiskNode> DiskFolder::find(const std::string& name) const {
  auto found = seen_.find(name);
  return found == seen_.end() ? nullptr : found->second;
}

void DiskFolder::apply(const Change& change, Entries& entries) {
  if (!change.erased.empty()) entries.erase(change.erased);
  if (!change.set.empty()) entries.insert_or_assign(change.set, change.node);
}

void DiskFolder::change(Change change) {
  apply(change, seen_);
  unsynced_.push_back(std::move(change));
}

void DiskFolder::set(const std::string& name, std::shared_ptr<DiskNode> node) {
  change({.erased = "", .set = name, .node = std::move(node)});
}

void DiskFolder::erase(const std::string& name) { change({.erased = name, .set = "", .node = nullptr}); }

void DiskFolder::rename(const std::string& from, const std::string& to) {
  change({.erased = from, .set = to, .node = find(from)});
}

void DiskFolder::sync() {
  durable_ = seen_;
  unsynced_.clear();
}

void DiskFolder::settle(Random& random) {
  if (unsynced_.empty()) return;
  Survival survival = draw_survival(random);
  for (const Change& change : unsynced_) {
    bool is_kept = survival == Survival::kEverything || (survival == Survival::kSome && random.chance(1, 2));
    if (is_kept) apply(change, durable_);
  }
  unsynced_.clear();
}

Loss DiskFolder::cut_power(Random& random) {
  return cut(seen_, durable_, !unsynced_.empty(), [&] { settle(random); });
}

}  // namespace varve::sim
