// What a simulated disk keeps: files and folders, each as processes see it and as a power cut leaves it.
//
// The model is a page cache that writes sectors back whenever it likes: of the changes to one sector since the last
// sync some first ones are on the disk, independently of every other sector and of the file's size. Entries of a
// folder survive one by one in any combination; a rename within a folder is one change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace varve::sim {

inline constexpr uint64_t kSectorBytes = 512;

// Of what was not synced when the power failed.
enum class Loss : uint8_t { kNone, kPart, kAll };

// A file or a folder; shared by the entries that name it and the handles that have it open.
class DiskNode {
 public:
  explicit DiskNode(uint64_t number) : number_(number) {}
  virtual ~DiskNode() = default;
  virtual bool is_folder() const = 0;
  // In order of making, for ordered containers.
  uint64_t number() const { return number_; }

 private:
  uint64_t number_;
};

class DiskFile final : public DiskNode {
 public:
  using DiskNode::DiskNode;
  bool is_folder() const override { return false; }

  uint64_t size() const { return seen_.size(); }
  size_t read(uint64_t offset, MutableByteView into) const;
  void write(uint64_t offset, ByteView bytes);
  void truncate(uint64_t size);

  void sync();
  // As after EIO: what was not yet on the disk counts as written, and some of it is lost for good, though it is
  // still seen. Bytes that share a sector with a later write get on the disk with it.
  void fail_sync(Random& random) { settle(random); }
  Loss cut_power(Random& random);
  // Flips one bit for good. False if the file is empty.
  bool damage(Random& random);

  // Whose handle has the lock; 0: nobody's.
  uint64_t lock_holder = 0;

 private:
  struct Change {
    uint64_t offset;  // of a write
    std::vector<uint8_t> bytes;
    bool is_truncate;
    uint64_t size_after;
  };

  void settle(Random& random);
  void settle_by_sector(Random& random);
  static void apply_within(const Change& change, uint64_t sector, std::vector<uint8_t>& image);

  std::vector<uint8_t> seen_;
  std::vector<uint8_t> durable_;
  std::vector<Change> unsynced_;
};

class DiskFolder final : public DiskNode {
 public:
  using Entries = std::map<std::string, std::shared_ptr<DiskNode>>;

  using DiskNode::DiskNode;
  bool is_folder() const override { return true; }

  const Entries& entries() const { return seen_; }
  std::shared_ptr<DiskNode> find(const std::string& name) const;
  // Replaces what has the name.
  void set(const std::string& name, std::shared_ptr<DiskNode> node);
  void erase(const std::string& name);
  void rename(const std::string& from, const std::string& to);

  void sync();
  void fail_sync(Random& random) { settle(random); }
  // This folder only; its children are the caller's to cut.
  Loss cut_power(Random& random);

 private:
  struct Change {
    std::string erased;  // "" if none
    std::string set;     // "" if none
    std::shared_ptr<DiskNode> node;
  };

  static void apply(const Change& change, Entries& entries);
  void change(Change change);
  void settle(Random& random);

  Entries seen_;
  Entries durable_;
  std::vector<Change> unsynced_;
};

}  // namespace varve::sim
