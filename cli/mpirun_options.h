// What --launcher mpirun takes beside a job's options, and what it leaves to mpirun.
#pragma once

#include <string>

#include "cli/given_options.h"
#include "cli/mpi_task.h"
#include "cli/value_reader.h"

namespace ddl::cli {

/// How the user has asked for it: "--mpi" or "--launcher mpirun".
std::string mpirun_choice(const GivenOptions& given);

/// Reads them; what mpirun cannot do is refused, with what to do instead. Pure.
MpiTask read_mpi_task(const GivenOptions& given, ValueReader& values);

}  // namespace ddl::cli
