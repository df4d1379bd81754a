// libddl's collectives on floats, as two entrants measure them.
#pragma once

namespace ddl::bench {

/// A rank of the entrant, with buffers in the shared heap or in memory that libddl does not know. Returns its exit code.
int run_ddl(int argc, char** argv, bool in_shared_heap);

}  // namespace ddl::bench
