// A file that ddlrun writes for the user.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::cli {

/// The whole text or nothing: it is written beside the path and then given its name. mode is lessened by the umask. Error:
/// the path with the system's reason; system_errno() is EEXIST for a file that is there and may not be replaced.
Status write_new_file(const std::string& path, std::string_view text, mode_t mode, bool replaces);

}  // namespace ddl::cli
