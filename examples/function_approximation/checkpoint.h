// A training that can be interrupted: weights and optimizer state in one file, and a fingerprint that shows whether
// two states have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "mlp.h"
#include "optimizer.h"

namespace fit {

// A short fingerprint of bytes: equal hashes in two runs mean equal bits.

/// 64-bit FNV-1a (Fowler, Noll, Vo). Finds accidents, not forgeries.
inline std::uint64_t fnv1a(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

// A training that can be interrupted: weights and optimizer state in one file.

/// Replaces path by the state of the training. At every instant, power loss included, path holds either the whole
/// old state or the whole new one: the new one is written and synced as path + ".tmp" and then renamed.
/// Throws std::system_error naming the file; path is then unchanged and the temporary file removed.
/// One writer at a time.
void save_checkpoint(const std::string& path, const Mlp& model, const Adam& optimizer);

/// Reads the state back, bit for bit. Returns false, and changes nothing, if there is no such file. Throws
/// std::runtime_error, and changes nothing, if it is not a checkpoint, damaged, or of a network of other layers.
bool load_checkpoint(const std::string& path, Mlp& model, Adam& optimizer);

}  // namespace fit
