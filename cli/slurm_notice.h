// What ddlrun says when srun has started several of it.
#pragma once

#include <optional>
#include <string>

#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

/// That each of them is a job of its own; nullopt where it runs alone. Pure.
std::optional<std::string> slurm_notice(const launcher::Environment& environment);

}  // namespace ddl::cli
