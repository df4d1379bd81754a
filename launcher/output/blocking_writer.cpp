#include "launcher/output/blocking_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace ddl::launcher {
namespace {

/// Writes all of bytes; 0 or the errno that ended it.
int write_blocking(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retry_eintr([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      if (retry_eintr([&] { return ::poll(&writable, 1, -1); }) < 0) return errno;
    } else {
      return errno;
    }
  }
  return 0;
}

/// What the thread owns, also when the writer has gone.
struct Descriptor {
  UniqueFd fd;
  bool is_broken = false;
  std::function<void(int)> on_broken;
};

}  // namespace

Result<std::unique_ptr<BlockingWriter>> BlockingWriter::create(int fd, Post post,
                                                               std::function<void(int)> on_broken) {
  auto owned = std::make_shared<Descriptor>();
  owned->fd.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!owned->fd) return fail_errno("fcntl F_DUPFD_CLOEXEC");
  owned->on_broken = std::move(on_broken);

  auto write = [owned](int, const std::string& bytes) -> std::function<void()> {
    if (owned->is_broken) return nullptr;
    const int error = write_blocking(owned->fd.get(), bytes);
    if (error == 0) return nullptr;
    owned->is_broken = true;
    return [on_broken = owned->on_broken, error] { on_broken(error); };
  };
  auto thread = WriterThread::start(std::move(write), std::move(post));
  if (!thread) return fail(std::move(thread.error()));
  return std::unique_ptr<BlockingWriter>(new BlockingWriter(std::move(*thread)));
}

void BlockingWriter::write(std::string bytes, std::function<void()> done) {
  thread_.push(0, std::move(bytes), std::move(done));
}

bool is_same_file(int fd_a, int fd_b) {
  struct stat a {};
  struct stat b {};
  if (::fstat(fd_a, &a) != 0 || ::fstat(fd_b, &b) != 0) return false;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace ddl::launcher
