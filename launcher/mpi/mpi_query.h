// Asks a site's own programs: mpirun for its version, and srun for the kinds of PMI that it offers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/mpi/mpirun.h"

namespace ddl::launcher {

/// The path and the kind of the site's mpirun; its --version shows the kind. name: a path, or a name to find in the
/// PATH of the environment. Errors: kNotFound; it prints no version, or one of a kind that ddlrun does not know.
Result<MpirunSite> find_mpirun(const std::string& name, const Environment& environment);

/// The libmpi of the environment that the command is in, as pip and conda make them: ../lib beside the folder of its
/// file. A sentence without its full stop, if this mpirun cannot serve it; else "". workdir: of the ranks.
std::string mismatch_with_environment(const std::string& command, const std::string& workdir,
                                      const MpirunSite& site, const Environment& environment);

/// The names in the output of "srun --mpi=list": "none", "pmi2", "pmix", "pmix_v4". Pure.
std::vector<std::string> parse_mpi_types(std::string_view text);

/// Asks srun, with a deadline. own: this process's environment. Error: there is no srun, or it names no types.
Result<std::vector<std::string>> ask_mpi_types(const Environment& own);

/// The value of srun's --mpi= for ranks that find each other by PMIx. Pure. Error: none of the types is PMIx.
Result<std::string> pmix_type_of(const std::vector<std::string>& types);

}  // namespace ddl::launcher
