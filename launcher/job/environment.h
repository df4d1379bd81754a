// environ(7) as a value.
#pragma once

#include <map>
#include <string>

namespace ddl::launcher {

using Environment = std::map<std::string, std::string>;

}  // namespace ddl::launcher
