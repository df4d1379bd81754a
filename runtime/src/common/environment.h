// The environment as a value, and what it says about how many processes were started. The second is the guard against an
// accidental world of one.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace ddl::runtime {

// The environment as a value, so that what reads it is a pure function.

/// The value of a variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// This process's own environment.
Environment process_environment();

// The guard against an accidental world of one: what the environment says about how many processes were started.

/// A variable that says that this process is one of several, and what to do if nothing answers all the same.
struct WorldHint {
  std::string variable;  ///< "SLURM_NTASKS"
  std::string value;     ///< "4"
  std::string remedy;    ///< "start the program with ddlrun or srun --mpi=pmix"

  /// "SLURM_NTASKS=4 says that this process is one of several: start ...".
  std::string sentence() const;
};

/// The first such variable, nullopt if the environment speaks of one process or of none. Pure.
std::optional<WorldHint> hinted_world(const Environment& environment);

}  // namespace ddl::runtime
