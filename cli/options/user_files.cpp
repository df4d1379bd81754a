// Reads and writes the files that the user names.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/fd.h"
#include "cli/options/this_process.h"

namespace ddl::cli {

namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

// Not by /dev/stdin: that cannot be opened where standard input is a socket, and starts a file from its beginning.
Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t count = retry_eintr([&] { return ::read(STDIN_FILENO, piece.data(), piece.size()); });
    if (count < 0) return fail_errno("standard input");
    if (count == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
    if (text.size() > kMostBytes)
      return fail(ErrorCode::kInvalidArgument, "standard input: more than 16 MiB");
  }
}

}  // namespace

Result<std::string> read_user_file(const std::string& path) {
  return path == "-" ? read_standard_input() : read_file(path, kMostBytes);
}

Status write_new_file(const std::string& path, std::string_view text, mode_t mode, bool replaces) {
  const std::string draft = path + "." + std::to_string(::getpid()) + ".new";
  const auto give_up = [&](int error) {
    ::unlink(draft.c_str());
    return fail(errno_error(path, error));
  };
  const UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return fail(errno_error(path, errno));
  if (const auto written = write_all(file.get(), text.data(), text.size()); !written)
    return give_up(written.error().system_errno());
  // link() refuses where rename() would replace.
  if (replaces) {
    if (::rename(draft.c_str(), path.c_str()) != 0) return give_up(errno);
    return {};
  }
  if (::link(draft.c_str(), path.c_str()) != 0) return give_up(errno);
  ::unlink(draft.c_str());
  return {};
}

}  // namespace ddl::cli
