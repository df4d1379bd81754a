// What ddlrun says when it finds itself in a Slurm allocation.
#pragma once

#include <optional>
#include <string>

#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

/// One sentence about the allocation that the environment describes, and that this version does not use it by itself;
/// nullopt outside of Slurm. When srun started several ddlruns, it says that each of them is a job of its own. Pure.
std::optional<std::string> slurm_notice(const launcher::Environment& environment);

}  // namespace ddl::cli
