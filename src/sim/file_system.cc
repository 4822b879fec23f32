#include "sim/file_system.h"

#include <algorithm>
#include <utility>

namespace varve::sim {

using runtime::File;
using runtime::FileErrc;
using runtime::FileResult;
using runtime::FileSpace;
using runtime::FolderEntry;
using runtime::OpenMode;

namespace {

// The parts of a path; absolute and relative ones start at the same root.
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= path.size()) {
    size_t end = std::min(path.find('/', start), path.size());
    std::string part = path.substr(start, end - start);
    CHECK(part != "..", "the simulated disk has no '..': {}", path);
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    start = end + 1;
  }
  return parts;
}

std::unexpected<runtime::FileError> io_error(std::string message) {
  return fail(FileErrc::kIo, std::move(message));
}

}  // namespace

// Where a path leads: its folder, its last name, and what stands there, if anything.
struct SimFileSystem::Place {
  std::shared_ptr<DiskFolder> folder;
  std::string name;
  std::shared_ptr<DiskNode> node;
};

class SimFileSystem::Handle final : public File {
 public:
  Handle(SimFileSystem& files, std::shared_ptr<DiskFile> file, uint64_t number, bool is_read_only)
      : files_(files),
        file_(std::move(file)),
        number_(number),
        process_(files.process_),
        is_read_only_(is_read_only) {
    files_.open_files_.insert(file_.get());
  }
  ~Handle() override {
    Lock guard(files_.mutex_);
    files_.open_files_.erase(files_.open_files_.find(file_.get()));
    if (file_->lock_holder == number_) file_->lock_holder = 0;
  }

  FileResult<size_t> read_at(uint64_t offset, MutableByteView into) override {
    Lock guard(files_.mutex_);
    if (auto usable = check_usable(); !usable) return pass_error(usable);
    return files_.read(*file_, offset, into);
  }

  FileResult<void> write_at(uint64_t offset, std::span<const ByteView> slices) override {
    Lock guard(files_.mutex_);
    if (auto writable = check_writable(); !writable) return writable;
    return files_.write(*file_, offset, slices);
  }

  FileResult<uint64_t> size() override {
    Lock guard(files_.mutex_);
    if (auto usable = check_usable(); !usable) return pass_error(usable);
    return file_->size();
  }

  FileResult<void> truncate(uint64_t size) override {
    Lock guard(files_.mutex_);
    if (auto writable = check_writable(); !writable) return writable;
    bool has_effect = true;
    auto begun = files_.begin_change(&has_effect);
    if (has_effect) file_->truncate(size);
    return begun;
  }

  FileResult<void> sync() override {
    Lock guard(files_.mutex_);
    if (auto usable = check_usable(); !usable) return usable;
    return files_.sync(*file_);
  }

  FileResult<void> lock() override {
    Lock guard(files_.mutex_);
    if (auto usable = check_usable(); !usable) return usable;
    if (file_->lock_holder != 0 && file_->lock_holder != number_) {
      return fail(FileErrc::kLocked, "another open file has the lock");
    }
    file_->lock_holder = number_;
    return {};
  }

 private:
  FileResult<void> check_usable() const {
    if (process_ != files_.process_) return io_error("the process that opened the file is gone");
    return files_.begin_read();
  }
  FileResult<void> check_writable() const {
    if (is_read_only_) return fail(FileErrc::kDenied, "the file is open for reading only");
    return check_usable();
  }

  SimFileSystem& files_;
  std::shared_ptr<DiskFile> file_;
  uint64_t number_;
  uint64_t process_;
  bool is_read_only_;
};

SimFileSystem::SimFileSystem(uint64_t seed) : random_(seed), root_(std::make_shared<DiskFolder>(0)) {}
SimFileSystem::~SimFileSystem() = default;

FileResult<SimFileSystem::Place> SimFileSystem::find_place(const std::string& path) const {
  std::vector<std::string> parts = parts_of(path);
  if (parts.empty()) return fail(FileErrc::kExists, "the root has no name");
  std::shared_ptr<DiskFolder> folder = root_;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    std::shared_ptr<DiskNode> next = folder->find(parts[i]);
    if (next == nullptr) return fail(FileErrc::kNotFound, path);
    if (!next->is_folder()) return fail(FileErrc::kNotAFolder, parts[i] + " is a file");
    folder = std::static_pointer_cast<DiskFolder>(next);
  }
  return Place{folder, parts.back(), folder->find(parts.back())};
}

FileResult<std::shared_ptr<DiskNode>> SimFileSystem::find(const std::string& path) const {
  if (parts_of(path).empty()) return root_;
  auto place = find_place(path);
  if (!place) return pass_error(place);
  if (place->node == nullptr) return fail(FileErrc::kNotFound, path);
  return place->node;
}

FileResult<std::shared_ptr<DiskFolder>> SimFileSystem::find_folder(const std::string& path) const {
  auto node = find(path);
  if (!node) return pass_error(node);
  if (!(*node)->is_folder()) return fail(FileErrc::kNotAFolder, path + " is a file");
  return std::static_pointer_cast<DiskFolder>(*node);
}

bool SimFileSystem::draw(uint32_t per_mille, std::string_view fault) {
  if (per_mille == 0 || !random_.chance(per_mille, 1000)) return false;
  if (fault_observer_) fault_observer_(fault);
  return true;
}

FileResult<void> SimFileSystem::begin_read() {
  if (is_power_off_) return io_error("the power is off");
  return {};
}

FileResult<void> SimFileSystem::begin_change(bool* has_effect) {
  if (is_power_off_) {
    *has_effect = false;
    return io_error("the power is off");
  }
  ++changing_calls_;
  if (!power_off_at_ || changing_calls_ < *power_off_at_) return {};
  power_off_at_.reset();
  is_power_off_ = true;
  *has_effect = random_.chance(1, 2);
  if (on_cut_) std::exchange(on_cut_, nullptr)();
  return io_error("the power fails");
}

FileResult<std::unique_ptr<File>> SimFileSystem::open(const std::string& path, OpenMode mode) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return pass_error(begun);
  auto place = find_place(path);
  if (!place) return pass_error(place);
  if (place->node && mode == OpenMode::kCreateNew) return fail(FileErrc::kExists, path);
  if (place->node && place->node->is_folder()) return fail(FileErrc::kNotAFolder, path + " is a folder");
  auto file = std::dynamic_pointer_cast<DiskFile>(place->node);
  if (file == nullptr) {
    if (mode == OpenMode::kRead || mode == OpenMode::kReadWrite) return fail(FileErrc::kNotFound, path);
    bool has_effect = true;
    auto begun = begin_change(&has_effect);
    if (has_effect) {
      file = std::make_shared<DiskFile>(next_node_++);
      place->folder->set(place->name, file);
    }
    if (!begun) return pass_error(begun);
  }
  return std::make_unique<Handle>(*this, file, next_handle_++, mode == OpenMode::kRead);
}

FileResult<void> SimFileSystem::link(const std::string& from, const std::string& to) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return begun;
  auto node = find(from);
  if (!node) return pass_error(node);
  auto place = find_place(to);
  if (!place) return pass_error(place);
  if ((*node)->is_folder()) return fail(FileErrc::kDenied, from + " is a folder");
  if (place->node) return fail(FileErrc::kExists, to);
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (has_effect) place->folder->set(place->name, *node);
  return begun;
}

FileResult<void> SimFileSystem::rename(const std::string& from, const std::string& to) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return begun;
  auto source = find_place(from);
  if (!source) return pass_error(source);
  auto target = find_place(to);
  if (!target) return pass_error(target);
  if (source->node == nullptr) return fail(FileErrc::kNotFound, from);
  if (target->node && target->node->is_folder()) return fail(FileErrc::kNotAFolder, to + " is a folder");
  if (target->node && source->node->is_folder()) return fail(FileErrc::kNotAFolder, to + " is a file");
  if (target->node == source->node) return {};
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (has_effect && source->folder == target->folder) {
    source->folder->rename(source->name, target->name);
  } else if (has_effect) {
    target->folder->set(target->name, source->node);
    source->folder->erase(source->name);
  }
  return begun;
}

FileResult<void> SimFileSystem::remove(const std::string& path) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return begun;
  auto place = find_place(path);
  if (!place) return pass_error(place);
  if (place->node == nullptr) return fail(FileErrc::kNotFound, path);
  if (place->node->is_folder()) return fail(FileErrc::kNotAFolder, path + " is a folder");
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (has_effect) place->folder->erase(place->name);
  return begun;
}

FileResult<void> SimFileSystem::remove_folder(const std::string& path) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return begun;
  auto place = find_place(path);
  if (!place) return pass_error(place);
  auto folder = find_folder(path);
  if (!folder) return pass_error(folder);
  if (!(*folder)->entries().empty()) return fail(FileErrc::kExists, path + " is not empty");
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (has_effect) place->folder->erase(place->name);
  return begun;
}

FileResult<void> SimFileSystem::make_folder(const std::string& path) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return begun;
  auto place = find_place(path);
  if (!place) return pass_error(place);
  if (place->node) return fail(FileErrc::kExists, path);
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (has_effect) place->folder->set(place->name, std::make_shared<DiskFolder>(next_node_++));
  return begun;
}

FileResult<std::vector<FolderEntry>> SimFileSystem::list(const std::string& path) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return pass_error(begun);
  auto folder = find_folder(path);
  if (!folder) return pass_error(folder);
  std::vector<FolderEntry> entries;
  for (const auto& [name, child] : (*folder)->entries()) {
    const auto* file = dynamic_cast<const DiskFile*>(child.get());
    entries.push_back({name, file == nullptr, file == nullptr ? 0 : file->size()});
  }
  return entries;
}

FileResult<FolderEntry> SimFileSystem::stat(const std::string& path) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return pass_error(begun);
  auto node = find(path);
  if (!node) return pass_error(node);
  const auto* file = dynamic_cast<const DiskFile*>(node->get());
  std::vector<std::string> parts = parts_of(path);
  return FolderEntry{parts.empty() ? "/" : parts.back(), file == nullptr, file == nullptr ? 0 : file->size()};
}

FileResult<void> SimFileSystem::sync_folder(const std::string& path) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return begun;
  auto folder = find_folder(path);
  if (!folder) return pass_error(folder);
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (begun && draw(faults_.sync_folder_fails, "file.sync_folder_fails")) {
    (*folder)->fail_sync(random_);
    return io_error("sync of folder " + path);
  }
  if (begun && draw(faults_.sync_lies, "file.sync_lies")) return begun;
  if (has_effect) (*folder)->sync();
  return begun;
}

FileResult<FileSpace> SimFileSystem::space(const std::string&) {
  Lock guard(mutex_);
  if (auto begun = begin_read(); !begun) return pass_error(begun);
  uint64_t used = std::min(bytes_used(), capacity_bytes_);
  return FileSpace{capacity_bytes_ - used, capacity_bytes_};
}

uint64_t SimFileSystem::bytes_used() {
  // Not by who holds a node: entries that a removed file had before the last sync of its folder hold it too.
  std::map<uint64_t, uint64_t> bytes_by_file;
  for (DiskFile* file : open_files_) bytes_by_file[file->number()] = file->size();
  std::vector<const DiskFolder*> folders = {root_.get()};
  while (!folders.empty()) {
    const DiskFolder* folder = folders.back();
    folders.pop_back();
    for (const auto& [name, node] : folder->entries()) {
      if (node->is_folder()) {
        folders.push_back(static_cast<const DiskFolder*>(node.get()));
      } else {
        bytes_by_file[node->number()] = static_cast<const DiskFile&>(*node).size();
      }
    }
  }
  uint64_t bytes = 0;
  for (const auto& [number, size] : bytes_by_file) bytes += size;
  return bytes;
}

FileResult<size_t> SimFileSystem::read(DiskFile& file, uint64_t offset, MutableByteView into) {
  if (draw(faults_.read_fails, "file.read_fails")) return io_error("read");
  return file.read(offset, into);
}

FileResult<void> SimFileSystem::write(DiskFile& file, uint64_t offset, std::span<const ByteView> slices) {
  std::vector<uint8_t> bytes;
  for (ByteView slice : slices) bytes.insert(bytes.end(), slice.begin(), slice.end());
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (!begun) {
    if (has_effect) file.write(offset, bytes);
    return begun;
  }
  if (draw(faults_.write_fails, "file.write_fails")) {
    file.write(offset, ByteView(bytes).first(random_.below(bytes.size() + 1)));
    return io_error("write");
  }
  uint64_t end = offset + bytes.size();
  uint64_t growth = end > file.size() ? end - file.size() : 0;
  uint64_t used = capacity_bytes_ == kUnlimitedBytes ? 0 : bytes_used();
  if (growth > 0 && used + growth > capacity_bytes_) {
    if (fault_observer_) fault_observer_("file.no_space");
    // As a real disk: the part that fits is written.
    uint64_t free_bytes = used < capacity_bytes_ ? capacity_bytes_ - used : 0;
    uint64_t missing = growth - free_bytes;
    if (missing < bytes.size()) file.write(offset, ByteView(bytes).first(bytes.size() - missing));
    return fail(FileErrc::kNoSpace, "the disk is full");
  }
  file.write(offset, bytes);
  return {};
}

FileResult<void> SimFileSystem::sync(DiskFile& file) {
  bool has_effect = true;
  auto begun = begin_change(&has_effect);
  if (begun && draw(faults_.sync_fails, "file.sync_fails")) {
    file.fail_sync(random_);
    return io_error("sync");
  }
  if (begun && draw(faults_.sync_lies, "file.sync_lies")) return begun;
  if (has_effect) file.sync();
  return begun;
}

void SimFileSystem::kill_process() {
  Lock guard(mutex_);
  ++process_;
  for (DiskFile* file : open_files_) file->lock_holder = 0;
}

void SimFileSystem::cut_power() {
  kill_process();
  Lock guard(mutex_);
  is_power_off_ = false;
  power_off_at_.reset();
  on_cut_ = nullptr;
  std::map<uint64_t, bool> done;
  cut_below(*root_, done);
}

void SimFileSystem::cut_below(DiskFolder& folder, std::map<uint64_t, bool>& done) {
  tell(folder.cut_power(random_), "disk.entries_lost", "disk.entries_lost");
  for (const auto& [name, node] : folder.entries()) {
    if (std::exchange(done[node->number()], true)) continue;
    if (node->is_folder()) {
      cut_below(static_cast<DiskFolder&>(*node), done);
    } else {
      tell(static_cast<DiskFile&>(*node).cut_power(random_), "disk.bytes_lost", "disk.bytes_torn");
    }
  }
}

void SimFileSystem::tell(Loss loss, std::string_view all, std::string_view part) {
  if (loss != Loss::kNone && fault_observer_) fault_observer_(loss == Loss::kAll ? all : part);
}

void SimFileSystem::cut_power_after(uint64_t calls, std::function<void()> on_cut) {
  Lock guard(mutex_);
  power_off_at_ = changing_calls_ + std::max<uint64_t>(calls, 1);
  on_cut_ = std::move(on_cut);
}

void SimFileSystem::cancel_power_cut() {
  Lock guard(mutex_);
  power_off_at_.reset();
  on_cut_ = nullptr;
}

bool SimFileSystem::is_power_off() const {
  Lock guard(mutex_);
  return is_power_off_;
}

uint64_t SimFileSystem::changing_calls() const {
  Lock guard(mutex_);
  return changing_calls_;
}

void SimFileSystem::set_faults(const FileFaults& faults) {
  Lock guard(mutex_);
  faults_ = faults;
}

void SimFileSystem::set_capacity(uint64_t bytes) {
  Lock guard(mutex_);
  capacity_bytes_ = bytes;
}

void SimFileSystem::set_fault_observer(std::function<void(std::string_view)> observer) {
  Lock guard(mutex_);
  fault_observer_ = std::move(observer);
}

bool SimFileSystem::damage(const std::string& path) {
  Lock guard(mutex_);
  auto node = find(path);
  if (!node || (*node)->is_folder()) return false;
  return static_cast<DiskFile&>(**node).damage(random_);
}

}  // namespace varve::sim
