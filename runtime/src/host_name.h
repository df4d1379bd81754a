#pragma once

#include <string>

namespace ddl::runtime {

/// This host's name as the kernel has it; "localhost" if it has none.
std::string host_name();

}  // namespace ddl::runtime
