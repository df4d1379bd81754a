#include "base/path_search.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

namespace ddl {

std::optional<std::string> find_in_path(std::string_view name, std::string_view path) {
  for (const std::string_view folder : split(path, ':')) {
    std::string file = std::string(folder.empty() ? "." : folder) + "/" + std::string(name);
    struct stat status {};
    if (::access(file.c_str(), X_OK) == 0 && ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      return file;
  }
  return std::nullopt;
}

}  // namespace ddl
