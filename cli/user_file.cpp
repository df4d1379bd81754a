#include "cli/user_file.h"

#include <unistd.h>

#include <array>

#include "base/fd.h"

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

}  // namespace ddl::cli
