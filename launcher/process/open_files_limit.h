// How many descriptors a process may have open.
#pragma once

#include <sys/resource.h>

#include "base/error.h"

namespace ddl::launcher {

/// The limit under which this process was started: what its children are to get back.
rlimit open_files_limit();

/// Lifts the soft limit to the hard one: an agent holds three descriptors a rank, whatever the user's shell allows.
void raise_open_files_limit();

/// Error: so few files may be open that nothing can be started, in words that name the limit.
Status check_open_files_limit();

}  // namespace ddl::launcher
