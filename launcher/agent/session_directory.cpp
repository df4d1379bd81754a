#include "launcher/agent/session_directory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace ddl::launcher {

Result<std::string> make_session_directory() {
  const char* parent = std::getenv("TMPDIR");
  if (parent == nullptr || parent[0] != '/') parent = "/tmp";
  std::string path = std::string(parent) + "/ddlrun-" + std::to_string(::getuid()) + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    auto error = errno_error("mkdtemp " + path, errno);
    return fail(std::move(error).during("making the job's private directory (TMPDIR chooses where)"));
  }
  return path;
}

void remove_session_directory(const std::string& path) {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove_all(path, ignored);
}

}  // namespace ddl::launcher
