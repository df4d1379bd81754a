#include "cli/options/this_process.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace ddl::cli {

void open_closed_standard_fds() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // open(2) takes the lowest free number, and all below fd are taken. Meant to be inherited: no O_CLOEXEC. What is
    // written where nobody listens shall fail, and not vanish.
    if (::open("/dev/null", O_RDONLY) != fd) std::abort();
  }
}

launcher::Environment process_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return launcher::parse_environment(entries);
}

int allowed_cpus() {
  // Larger than any machine today; a kernel with more CPUs than the set refuses it with EINVAL.
  constexpr int kMostCpus = 1 << 16;
  cpu_set_t* cpus = CPU_ALLOC(kMostCpus);
  const std::size_t size = CPU_ALLOC_SIZE(kMostCpus);
  CPU_ZERO_S(size, cpus);
  const int count = ::sched_getaffinity(0, size, cpus) == 0 ? CPU_COUNT_S(size, cpus) : 1;
  CPU_FREE(cpus);
  return count;
}

std::vector<std::string> config_folders(const launcher::Environment& environment, std::string_view kind) {
  const auto value_of = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::vector<std::string> folders;
  const std::string below = "/ddlrun/" + std::string(kind);
  // The specification of XDG: one that is not absolute does not count.
  if (const std::string config = value_of("XDG_CONFIG_HOME"); config.starts_with('/')) {
    folders.push_back(config + below);
  } else if (const std::string home = value_of("HOME"); !home.empty()) {
    folders.push_back(home + "/.config" + below);
  }
  folders.push_back("/etc" + below);
  return folders;
}

std::string own_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
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
