// A file descriptor with one owner. A borrowed descriptor is a plain int.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/error.h"

namespace ddl {

/// Owns a descriptor and closes it. Every descriptor made here is close-on-exec.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct FdPair {
  UniqueFd first;   ///< pipe: the reading end
  UniqueFd second;  ///< pipe: the writing end
};

Result<FdPair> make_pipe();
/// Connected Unix sockets; type is SOCK_STREAM or SOCK_SEQPACKET.
Result<FdPair> make_socket_pair(int type);
Status set_nonblocking(int fd, bool on);
/// Writes all of the bytes, and waits while a descriptor that does not block, as a standard stream may be that was inherited, takes none.
Status write_all(int fd, const void* data, std::size_t size);
/// The whole file, at most max_size bytes; longer is an error.
Result<std::string> read_file(const std::string& path, std::size_t max_size = 1 << 20);

}  // namespace ddl
