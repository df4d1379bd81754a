// Whose GPUs the tests use.
#pragma once

#include <cstdlib>
#include <string_view>

namespace ddl::test {

/// DDL_TEST_GPU says it: cuda (default) or hip.
inline bool is_hip() {
  const char* const vendor = std::getenv("DDL_TEST_GPU");
  return vendor != nullptr && std::string_view(vendor) == "hip";
}

}  // namespace ddl::test
