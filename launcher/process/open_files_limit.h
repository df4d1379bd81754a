// How many descriptors a process may have open.
#pragma once

#include <sys/resource.h>

namespace ddl::launcher {

/// The limit under which this process was started: what its children are to get back.
rlimit open_files_limit();

/// Lifts the soft limit to the hard one: an agent holds three descriptors a rank, whatever the user's shell allows.
void raise_open_files_limit();

}  // namespace ddl::launcher
