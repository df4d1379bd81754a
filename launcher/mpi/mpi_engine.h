// mpirun as ddlrun's only rank: it is started and ended by an agent, and starts the ranks itself.
#pragma once

#include <string>
#include <vector>

namespace ddl::launcher {

/// words: MASTER_ADDR or "", names of variables to forget by comma, and then mpirun's own. Becomes it, without what the agent has told its
/// rank about itself. Returns only if that fails: 127 or 126, after a sentence on standard error.
int become_mpirun(const std::vector<std::string>& words);

}  // namespace ddl::launcher
