// A folder that is gone in the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "launcher/agent/node_resources.h"

namespace ddl::cli {

/// In TMPDIR, else /tmp, with all that is put into it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = launcher::tmp_directory() + "/ddlrun-check-build-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }  ///< "": it could not be made

 private:
  std::string path_;
};

}  // namespace ddl::cli
