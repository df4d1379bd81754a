// "2(x3),1": a number for each node, as Slurm writes them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

/// 2, 2, 2, 1. Pure. Error: what is no positive number, or more than `most` of them; nothing is made of a repetition before it
/// has been counted.
Result<std::vector<int>> parse_slurm_counts(std::string_view text, std::size_t most);

}  // namespace ddl::launcher
