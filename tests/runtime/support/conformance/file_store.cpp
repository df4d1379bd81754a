#include "runtime/support/conformance/file_store.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Readable when a file has been moved into the folder; closes itself.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    ok_ = fd_ >= 0 && ::inotify_add_watch(fd_, folder.c_str(), IN_MOVED_TO) >= 0;
  }
  ~FolderWatch() {
    if (fd_ >= 0) ::close(fd_);
  }
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  bool ok() const { return ok_; }
  void wait(std::chrono::milliseconds most) const {
    pollfd entry{fd_, POLLIN, 0};
    (void)::poll(&entry, 1, static_cast<int>(most.count()));
    std::array<char, 4096> events{};
    while (::read(fd_, events.data(), events.size()) > 0) {
    }
  }

 private:
  int fd_;
  bool ok_ = false;
};

}  // namespace

ddl_store FileStore::functions(double timeout_seconds) {
  ddl_store store = DDL_STORE_INIT;
  store.put = [](void* self, const char* key, const void* value, std::uint64_t bytes) {
    return static_cast<FileStore*>(self)->put(key, std::string(static_cast<const char*>(value), bytes));
  };
  store.get = [](void* self, const char* key, double seconds, void* value, std::uint64_t capacity) {
    return static_cast<FileStore*>(self)->get(key, seconds, value, capacity);
  };
  store.argument = this;
  store.timeout_seconds = timeout_seconds;
  return store;
}

std::string FileStore::path_of(const std::string& key) const {
  std::string name = key;
  std::replace(name.begin(), name.end(), '/', '|');
  return folder_ + "/" + name;
}

std::int32_t FileStore::put(const std::string& key, const std::string& value) {
  if (puts_left_ == 0) return kFailed;
  if (puts_left_ > 0) --puts_left_;
  // Others see whole values only.
  std::string partial = folder_ + "/.partial-XXXXXX";
  const int fd = ::mkstemp(partial.data());
  if (fd < 0) return kFailed;
  const bool written = ::write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  ::close(fd);
  return written && std::rename(partial.c_str(), path_of(key).c_str()) == 0 ? 0 : kFailed;
}

std::int64_t FileStore::get(const std::string& key, double seconds, void* value, std::uint64_t capacity) {
  using Clock = std::chrono::steady_clock;
  if (gets_left_ == 0) return kFailed;
  if (gets_left_ > 0) --gets_left_;
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const FolderWatch watch(folder_);
  if (!watch.ok()) return kFailed;
  for (;;) {
    if (const auto found = content_of(path_of(key))) {
      std::memcpy(value, found->data(), std::min<std::size_t>(found->size(), capacity));
      return static_cast<std::int64_t>(found->size());
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return -1;
    watch.wait(left);
  }
}

std::string make_shared_folder(ddl_context* context, const std::string& parent) {
  std::array<char, 512> path{};
  std::snprintf(path.data(), path.size(), "%s/ddl-store-XXXXXX", parent.c_str());
  std::uint8_t made = 1;
  if (ddl_rank(context) == 0) made = ::mkdtemp(path.data()) != nullptr ? 1 : 0;
  expect_ok(ddl_broadcast(context, &made, 1, DDL_UINT8, 0, nullptr), "broadcast");
  expect(made == 1, "no folder for a store can be made in " + parent);
  expect_ok(ddl_broadcast(context, path.data(), path.size(), DDL_UINT8, 0, nullptr), "broadcast");
  return path.data();
}

void remove_shared_folder(ddl_context* context, const std::string& folder) {
  expect_ok(ddl_barrier(context, nullptr), "barrier");
  if (ddl_rank(context) == 0) std::filesystem::remove_all(folder);
}

}  // namespace ddl::conformance
