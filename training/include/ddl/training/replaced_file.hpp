// A file that is replaced as a whole: whenever the process or the machine ends, the old one or the new one is there.
#ifndef DDL_TRAINING_REPLACED_FILE_HPP
#define DDL_TRAINING_REPLACED_FILE_HPP

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "ddl/error.hpp"

namespace ddl::training::detail {

/// What the system said of a file, as errno has it.
[[noreturn]] inline void fail_of_file(const std::filesystem::path& path, const char* what, int error) {
  throw Error(DDL_ERROR_SYSTEM, path.string() + " " + what + ": " + std::generic_category().message(error));
}

/// Calls it again while signals interrupt it.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Owns a descriptor; -1: none.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Makes what was renamed, made or removed in a folder outlive a loss of power.
inline void sync_folder(const std::filesystem::path& folder) {
  const OpenFile open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open) fail_of_file(folder, "cannot be opened", errno);
  // Some file systems, such as FUSE's, have nothing to sync in a folder and say so.
  if (uninterrupted([&] { return ::fsync(open.get()); }) != 0 && errno != EINVAL && errno != ENOSYS &&
      errno != ENOTSUP)
    fail_of_file(folder, "cannot be synced", errno);
}

inline std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// The new content of a file is written under another name in the same folder and gets its name in commit(). A writer
/// holds a lock on its unfinished file. So the next writer of the same file knows those of writers that were killed, and
/// removes them; where the file system has no locks, they stay. Two writers of one file at a time: the last one wins.
class ReplacedFile {
 public:
  explicit ReplacedFile(std::filesystem::path path) : path_(std::move(path)) {
    remove_leftovers(path_);
    const std::string start = path_.string() + kMark + std::to_string(::getpid()) + "-";
    for (int number = 0; !file_; ++number) {
      written_ = start + std::to_string(number);
      OpenFile file(::open(written_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!file && errno == EEXIST) continue;  // of a thread of this process, or of a process on another host
      if (!file) fail_of_file(written_, "cannot be made", errno);
      (void)uninterrupted([&] { return ::flock(file.get(), LOCK_EX); });
      // Before it was locked, another writer may have taken it for a leftover.
      struct stat status = {};
      if (::fstat(file.get(), &status) == 0 && status.st_nlink == 0) continue;
      file_ = std::move(file);
    }
  }
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  /// Without commit() the old file stays.
  ~ReplacedFile() {
    if (file_) ::unlink(written_.c_str());
  }

  void write(const void* data, std::size_t bytes) {
    const auto* next = static_cast<const char*>(data);
    while (bytes > 0) {
      // One call of Linux writes less than 2^31 bytes.
      const std::size_t part = std::min<std::size_t>(bytes, std::size_t{1} << 30);
      const ssize_t written = uninterrupted([&] { return ::write(file_.get(), next, part); });
      if (written < 0) fail_of_file(path_, "cannot be written", errno);
      next += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }

  /// Puts it in the place of the old file. On a failure the old one stays, unless it was the folder's sync that failed:
  /// then one of both is there.
  void commit() {
    if (uninterrupted([&] { return ::fsync(file_.get()); }) != 0)
      fail_of_file(path_, "cannot be written", errno);
    if (::rename(written_.c_str(), path_.c_str()) != 0) fail_of_file(path_, "cannot be replaced", errno);
    file_ = OpenFile();
    sync_folder(folder_of(path_));
  }

  /// The name of the file whose unfinished file this is; "": it is none.
  static std::string name_of_leftover(const std::string& name) {
    const std::size_t mark = name.find(kMark);
    return mark == std::string::npos ? "" : name.substr(0, mark);
  }

  /// Removes what writers of this file have left that were killed.
  static void remove_leftovers(const std::filesystem::path& path) {
    const std::string start = path.filename().string() + kMark;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder_of(path), ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.compare(0, start.size(), start) != 0) continue;
      const OpenFile file(::open(entry.path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
      if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    }
  }

 private:
  static constexpr const char* kMark = ".unfinished-";
  std::filesystem::path path_;
  std::string written_;
  OpenFile file_;
};

}  // namespace ddl::training::detail

#endif  // DDL_TRAINING_REPLACED_FILE_HPP
