// The environment as a value, so that what reads it is a pure function.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace ddl::runtime {

/// The value of a variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// This process's own environment.
Environment process_environment();

}  // namespace ddl::runtime
