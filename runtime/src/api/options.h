// Reads option structs of ddl.h, whose size tells which version of the header the program was compiled against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>

#include "ddl/ddl.h"
#include "runtime/src/failure.h"

namespace ddl::runtime {

/// Copies what the program gave over defaults. Fields that an older program does not have keep their defaults; a newer
/// program's fields that this library does not know must be zero, or it would silently not do what was asked.
template <class Options>
Outcome read_options(const Options* given, Options& options, const char* initializer) {
  const std::size_t own_size = sizeof(Options);
  if (given == nullptr) return {};
  const std::size_t given_size = given->struct_size;
  if (given_size < 2 * sizeof(std::uint32_t)) {
    return failed(DDL_ERROR_INVALID_ARGUMENT, "options: struct_size is " + std::to_string(given_size) +
                                                  "; initialise the struct with " + initializer);
  }
  std::memcpy(&options, given, std::min(given_size, own_size));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (given_size > own_size &&
      !std::all_of(bytes + own_size, bytes + given_size, [](unsigned char byte) { return byte == 0; })) {
    return failed(DDL_ERROR_UNSUPPORTED, std::string("options: a field is set that libddl ") + ddl_version() +
                                             " does not know; the program was compiled for a newer one");
  }
  if (options.reserved != 0) {
    return failed(DDL_ERROR_INVALID_ARGUMENT,
                  std::string("options: reserved is not 0; initialise the struct with ") + initializer);
  }
  if (!std::isfinite(options.timeout_seconds) || options.timeout_seconds < 0) {
    return failed(DDL_ERROR_INVALID_ARGUMENT,
                  "options: timeout_seconds is not a number of seconds, 0 or above");
  }
  return {};
}

}  // namespace ddl::runtime
