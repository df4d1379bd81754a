// Files that the user names.
#pragma once

#include <string>

#include "base/error.h"

namespace ddl::cli {

/// The whole of a file, or of standard input if path is "-". Error: the path with the system's reason, or that it has
/// more than 16 MiB.
Result<std::string> read_user_file(const std::string& path);

}  // namespace ddl::cli
