#include "cli/options/this_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/files.h"

namespace ddl::cli {

void open_closed_standard_fds() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // open(2) returns the lowest free number, and all below fd are open. It is to be inherited: no O_CLOEXEC.
    // Read-only, so that writing to a closed standard output fails instead of losing the bytes silently.
    if (::open("/dev/null", O_RDONLY) != fd) std::abort();
  }
}

std::vector<std::string> config_folders(const Environment& environment, std::string_view kind) {
  std::vector<std::string> folders;
  const std::string below = "/ddlrun/" + std::string(kind);
  // The XDG Base Directory Specification: a path that is not absolute is ignored.
  if (const std::string config = value_of(environment, "XDG_CONFIG_HOME"); config.starts_with('/')) {
    folders.push_back(config + below);
  } else if (const std::string home = value_of(environment, "HOME"); !home.empty()) {
    folders.push_back(home + "/.config" + below);
  }
  folders.push_back("/etc" + below);
  return folders;
}

std::string libexec_path(std::string_view name) {
  return (std::filesystem::path(own_path()).parent_path() / DDL_LIBEXECDIR_FROM_BINDIR / "ddlrun" / name)
      .lexically_normal()
      .string();
}

std::string document(std::string_view page) {
  const std::filesystem::path path =
      std::filesystem::path(own_path()).parent_path() / DDL_DOCDIR_FROM_BINDIR / "docs" / page;
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path.lexically_normal().string();
  return "docs/" + std::string(page) + " in ddlrun's sources";
}

Result<std::string> current_directory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  if (error) return fail(errno_error("the current directory", error.value()));
  return path.string();
}

namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

// Not through /dev/stdin: it cannot be opened if standard input is a socket, and reads a file from its beginning.
Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t count = retry_eintr([&] { return ::read(STDIN_FILENO, piece.data(), piece.size()); });
    if (count < 0) return fail_errno("standard input");
    if (count == 0) return text;
    text.append(piece.data(), count);
    if (text.size() > kMaxBytes) return fail(ErrorCode::kInvalidArgument, "standard input: more than 16 MiB");
  }
}

}  // namespace

Result<std::string> read_user_file(const std::string& path) {
  return path == "-" ? read_standard_input() : read_file(path, kMaxBytes);
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
