#include "launcher/process/session_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/files.h"

namespace ddl::launcher {

Result<std::string> new_session_directory_name() {
  constexpr std::size_t kRandomBytes = 8;
  DDL_ASSIGN(random, random_hex(kRandomBytes));
  return fmt::format("{}/ddlrun-{}-{}", tmp_directory(), ::getuid(), random);
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
