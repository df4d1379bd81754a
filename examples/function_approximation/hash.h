// A short fingerprint of bytes: equal hashes in two runs mean equal bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fit {

/// 64-bit FNV-1a (Fowler, Noll, Vo). Finds accidents, not forgeries.
inline std::uint64_t fnv1a(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace fit
