#include "runtime/src/environment.h"

#include <cstdlib>

namespace ddl::runtime {

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

}  // namespace ddl::runtime
