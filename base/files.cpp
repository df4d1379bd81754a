#include "base/files.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace ddl {

std::string own_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

std::string tmp_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && directory[0] == '/' ? directory : "/tmp";
}

Result<TemporaryFolder> TemporaryFolder::make_in(const std::string& parent, const std::string& name) {
  std::string path = parent + "/" + name + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail_errno("create " + path);
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace ddl
