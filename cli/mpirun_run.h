// ddlrun --launcher mpirun: the site's mpirun starts the ranks.
#pragma once

#include "cli/console.h"
#include "cli/options.h"
#include "launcher/job/environment.h"

namespace ddl::cli {

/// Starts mpirun, or prints its line for --dry-run, and watches over it: what it leaves behind is ended. Returns ddlrun's exit
/// code, which is mpirun's.
int run_by_mpirun(const Request& request, const launcher::Environment& environment, const Console& console);

/// The part of a rank: what mpirun starts, "ddlrun --mpi-rank [options] -- command".
int be_mpi_rank(const std::vector<std::string>& words, const launcher::Environment& environment,
                const Console& console);

}  // namespace ddl::cli
