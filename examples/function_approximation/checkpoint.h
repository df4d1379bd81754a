// A training that can be interrupted: weights and optimizer state in one file.
#pragma once

#include <string>

#include "adam.h"
#include "mlp.h"

namespace fit {

/// Replaces path by the state of the training. At every instant, power loss included, path holds either the whole
/// old state or the whole new one: the new one is written and synced as path + ".tmp" and then renamed.
/// Throws std::system_error naming the file; path is then unchanged and the temporary file removed.
/// One writer at a time.
void save_checkpoint(const std::string& path, const Mlp& model, const Adam& optimizer);

/// Reads the state back, bit for bit. Returns false, and changes nothing, if there is no such file. Throws
/// std::runtime_error, and changes nothing, if it is not a checkpoint, damaged, or of a network of other layers.
bool load_checkpoint(const std::string& path, Mlp& model, Adam& optimizer);

}  // namespace fit
