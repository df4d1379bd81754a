// The environment as a value, so that its readers are pure functions, and the number of started processes that it
// indicates. The second is the guard against an accidental world of one.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace ddl::runtime {

/// The value of a variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// This process's own environment.
Environment process_environment();

/// A variable that says that this process is one of several, and what to do if no launcher answers nevertheless.
struct WorldHint {
  std::string variable;  ///< "SLURM_NTASKS"
  std::string value;     ///< "4"
  std::string remedy;    ///< "start the program with ddlrun or srun --mpi=pmix"

  /// "SLURM_NTASKS=4 says that this process is one of several: start ...".
  std::string sentence() const;
};

/// The first such variable; nullopt if the environment indicates one process or gives no number. Pure.
std::optional<WorldHint> hinted_world(const Environment& environment);

}  // namespace ddl::runtime
