#include "cli/options/this_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"

namespace ddl::cli {

void open_closed_standard_fds() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // open(2) takes the lowest free number, and all below fd are taken. Meant to be inherited: no O_CLOEXEC. What is
    // written where nobody listens shall fail, and not vanish.
    if (::open("/dev/null", O_RDONLY) != fd) std::abort();
  }
}

std::vector<std::string> config_folders(const Environment& environment, std::string_view kind) {
  std::vector<std::string> folders;
  const std::string below = "/ddlrun/" + std::string(kind);
  // The specification of XDG: one that is not absolute does not count.
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

}  // namespace ddl::cli
