// "node[1-3,7]": many names in one, as Slurm writes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::launcher {

/// Every name that the pattern stands for, in its order; of several brackets the last one counts fastest. Zeros in
/// front are kept: "n[08-11]-ib0" is n08-ib0, n09-ib0, n10-ib0, n11-ib0. A pattern without brackets is its own name.
/// Error: brackets that hold no numbers or ranges, that run backwards, whose ends are padded differently; or more than
/// `most` names. Nothing is made of them before they have been counted.
Result<std::vector<std::string>> expand_brackets(std::string_view pattern, std::size_t most);

}  // namespace ddl::launcher
