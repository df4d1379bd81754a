// The site's mpirun.
#pragma once

#include <string>

#include "base/error.h"
#include "launcher/job/environment.h"
#include "launcher/mpi/mpirun_line.h"

namespace ddl::cli {

/// Where it is and of which kind: asked for its version. name: in the PATH of the environment, or a path. Errors: kNotFound; that it
/// does not say, or is none that ddlrun knows.
Result<launcher::MpirunSite> find_mpirun(const std::string& name, const launcher::Environment& environment);

}  // namespace ddl::cli
