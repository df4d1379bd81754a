#include "bench/run_folder.h"

#include <stdlib.h>

#include <filesystem>

namespace ddl::bench {

Result<RunFolder> RunFolder::make_in(const std::string& parent) {
  std::string path = parent + "/ddl-bench-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail_errno("create " + path);
  return RunFolder(std::move(path));
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace ddl::bench
