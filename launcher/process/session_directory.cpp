#include "launcher/process/session_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include "base/files.h"

namespace ddl::launcher {

std::string new_session_directory_name() {
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32 | random();
  return fmt::format("{}/ddlrun-{}-{:016x}", tmp_directory(), ::getuid(), number);
}

Status make_session_directory(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0) return {};
  auto error = errno_error("mkdir " + path, errno);
  return fail(std::move(error).during("making the job's private directory (TMPDIR chooses where)"));
}

void remove_session_directory(const std::string& path) {
  struct stat status {};
  if (path.empty() || ::lstat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace ddl::launcher
