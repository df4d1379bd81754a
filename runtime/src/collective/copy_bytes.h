// memcpy() for ranges that may be empty.
#pragma once

#include <cstddef>
#include <cstring>

namespace ddl::runtime {

/// Allows an empty copy from or to a null pointer, and one onto itself, which does nothing.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace ddl::runtime
