// Asks a site's own launchers which MPI they start: mpirun for its version, srun for the kinds of PMI
// that it offers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/mpi/mpirun.h"

namespace ddl::launcher {

// The site's mpirun.

/// Where it is and of which kind: asked for its version. name: in the PATH of the environment, or a path. Errors: kNotFound; that it
/// does not say, or is none that ddlrun knows.
Result<MpirunSite> find_mpirun(const std::string& name, const Environment& environment);

// The kinds of MPI that a site's srun can start.

/// Of what "srun --mpi=list" prints: "none", "pmi2", "pmix", "pmix_v4". Pure.
std::vector<std::string> parse_mpi_types(std::string_view text);

/// Asks srun, with a deadline. Error: there is no srun, or it does not say.
Result<std::vector<std::string>> ask_mpi_types();

/// What srun's --mpi= is to be for ranks that find each other by PMIx. Pure. Error: none of the types is PMIx.
Result<std::string> pmix_type_of(const std::vector<std::string>& types);

}  // namespace ddl::launcher
