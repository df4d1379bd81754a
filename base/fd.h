// File descriptors and memory mappings with one owner each: pipes, socket pairs, whole reads and writes, and
// descriptors that are sent over a Unix socket. A borrowed descriptor is a plain int.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
/// Writes all of the bytes. A non-blocking descriptor, such as an inherited standard stream, may take none: then it
/// waits.
Status write_all(int fd, const void* data, std::size_t size);
/// The whole file, at most max_size bytes; longer is an error.
Result<std::string> read_file(const std::string& path, std::size_t max_size = 1 << 20);

// Bytes and file descriptors over a Unix stream socket (SCM_RIGHTS).

/// The kernel takes at most this many descriptors in one message (SCM_MAX_FD, unix(7)).
inline constexpr std::size_t kMaxPassedFds = 253;

/// Sends all of data on a blocking stream socket; the descriptors travel with its first byte and stay the caller's.
/// data must not be empty, and fds.size() is at most kMaxPassedFds.
Status send_with_fds(int socket, std::span<const std::byte> data, std::span<const int> fds);

struct ReceivedBytes {
  std::size_t size = 0;       ///< 0 at end of stream
  std::vector<UniqueFd> fds;  ///< close-on-exec; those of every message that the bytes came from
};

/// One recvmsg() into buffer. Truncated descriptors are an error. On a non-blocking socket with nothing to read the
/// error's system_errno() is EAGAIN.
Result<ReceivedBytes> receive_with_fds(int socket, std::span<std::byte> buffer);

// A memory mapping with one owner.

/// Owns a shared, readable and writable mapping of a descriptor and unmaps it.
class MappedMemory {
 public:
  MappedMemory() = default;
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  /// Maps the first size bytes of fd; the descriptor may be closed afterwards.
  static Result<MappedMemory> map_shared(int fd, std::size_t size);

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  MappedMemory(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ddl
