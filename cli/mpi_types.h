// The kinds of MPI that a site's srun can start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::cli {

/// Of what "srun --mpi=list" prints: "none", "pmi2", "pmix", "pmix_v4". Pure.
std::vector<std::string> parse_mpi_types(std::string_view text);

/// Asks srun, with a deadline. Error: there is no srun, or it does not say.
Result<std::vector<std::string>> ask_mpi_types();

}  // namespace ddl::cli
