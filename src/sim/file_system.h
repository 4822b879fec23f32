// SimFileSystem: one machine's files, in memory, with faults and power cuts.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/file_system.h"
#include "sim/disk.h"

namespace varve::sim {

// Per mille of the calls of each kind that fail.
struct FileFaults {
  uint32_t read_fails = 0;         // kIo
  uint32_t write_fails = 0;        // kIo; some first bytes may be written
  uint32_t sync_fails = 0;         // kIo; see DiskFile::fail_sync
  uint32_t sync_lies = 0;          // succeeds and does nothing, folders too: what no program can survive
  uint32_t sync_folder_fails = 0;  // kIo; unsynced entries may be lost, though still seen
};

// Life: belongs to the machine; processes come and go. Needs no world and no coroutine: a test may drive it alone,
// and any thread may call it. Handles of a dead process do nothing.
class SimFileSystem final : public runtime::FileSystem {
 public:
  explicit SimFileSystem(uint64_t seed);
  ~SimFileSystem() override;

  runtime::FileResult<std::unique_ptr<runtime::File>> open(const std::string& path,
                                                           runtime::OpenMode mode) override;
  runtime::FileResult<void> link(const std::string& from, const std::string& to) override;
  runtime::FileResult<void> rename(const std::string& from, const std::string& to) override;
  runtime::FileResult<void> remove(const std::string& path) override;
  runtime::FileResult<void> remove_folder(const std::string& path) override;
  runtime::FileResult<void> make_folder(const std::string& path) override;
  runtime::FileResult<std::vector<runtime::FolderEntry>> list(const std::string& path) override;
  runtime::FileResult<runtime::FolderEntry> stat(const std::string& path) override;
  runtime::FileResult<void> sync_folder(const std::string& path) override;
  runtime::FileResult<runtime::FileSpace> space(const std::string& path) override;

  // The process is killed: its handles die and its locks are free; what it wrote stays.
  void kill_process();
  // The power fails: as kill_process(), and what was not synced is dropped, torn and reordered.
  void cut_power();
  // After this many more changing calls (write, truncate, sync, link, rename, remove, make, sync_folder) the power
  // is off: the call itself may have its effect or not, it and all later ones fail with kIo, until cut_power() is
  // called. `on_cut`, if given, is called once, inside the last call, and must not call back.
  void cut_power_after(uint64_t calls, std::function<void()> on_cut = nullptr);
  void cancel_power_cut();
  bool is_power_off() const;
  // Changing calls made so far: what to choose the argument above from.
  uint64_t changing_calls() const;

  void set_faults(const FileFaults& faults);
  void set_capacity(uint64_t bytes);
  // Told the name of each fault that happens ("file.sync_fails"), and of each loss by a power cut ("disk.bytes_torn").
  void set_fault_observer(std::function<void(std::string_view)> observer);
  // Flips one bit of the file for good. False if there is no such file, or it is empty.
  bool damage(const std::string& path);

 private:
  class Handle;
  struct Place;
  using Lock = std::lock_guard<std::mutex>;

  runtime::FileResult<Place> find_place(const std::string& path) const;
  runtime::FileResult<std::shared_ptr<DiskNode>> find(const std::string& path) const;
  runtime::FileResult<std::shared_ptr<DiskFolder>> find_folder(const std::string& path) const;
  // kIo if this call is the last before, or comes after, the power cut. Sets `has_effect` if it still counts.
  runtime::FileResult<void> begin_change(bool* has_effect);
  runtime::FileResult<void> begin_read();
  bool draw(uint32_t per_mille, std::string_view fault);
  uint64_t bytes_used();
  void cut_below(DiskFolder& folder, std::map<uint64_t, bool>& done);
  void tell(Loss loss, std::string_view all, std::string_view part);

  runtime::FileResult<size_t> read(DiskFile& file, uint64_t offset, MutableByteView into);
  runtime::FileResult<void> write(DiskFile& file, uint64_t offset, std::span<const ByteView> slices);
  runtime::FileResult<void> sync(DiskFile& file);

  static constexpr uint64_t kUnlimitedBytes = 1ull << 40;

  mutable std::mutex mutex_;
  Random random_;
  std::shared_ptr<DiskFolder> root_;
  std::multiset<DiskFile*> open_files_;  // one for each handle
  uint64_t next_node_ = 1;
  uint64_t next_handle_ = 1;
  // Handles of an earlier process have a lower number.
  uint64_t process_ = 1;
  uint64_t capacity_bytes_ = kUnlimitedBytes;
  uint64_t changing_calls_ = 0;
  std::optional<uint64_t> power_off_at_;
  bool is_power_off_ = false;
  std::function<void()> on_cut_;
  FileFaults faults_;
  std::function<void(std::string_view)> fault_observer_;
};

}  // namespace varve::sim
