// Where a command is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddl {

/// What a shell would start for a bare name: the first executable file in the folders of a PATH, parted by ':'. Asks the file
/// system.
std::optional<std::string> find_in_path(std::string_view name, std::string_view path);

}  // namespace ddl
