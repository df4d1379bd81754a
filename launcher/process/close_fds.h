// Closing what a forked process inherited and must not keep.
#pragma once

namespace ddl::launcher {

/// Closes every descriptor above 2 except keep and also_keep (-1: none). Only right after fork.
void close_all_fds_but(int keep, int also_keep = -1);

}  // namespace ddl::launcher
