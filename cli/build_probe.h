// Finds out what this build can use on this machine.
#pragma once

#include <vector>

#include "cli/build_box.h"

namespace ddl::cli {

/// Every box of --check-build, really tried: loads libraries, makes a memfd and a pidfd. Starts no process or thread of
/// ours and writes nothing.
std::vector<BuildBox> probe_build();

}  // namespace ddl::cli
