#include "runtime/src/common/environment.h"

#include <cstdlib>

#include "base/text.h"
#include "contract/environment.h"

namespace ddl::runtime {

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

namespace {

/// A variable that holds the number of processes of the job.
struct SizeVariable {
  const char* name;
  const char* remedy;
};

constexpr char kUnderDdlrun[] = "start the program with ddlrun";
constexpr char kUnderSlurm[] = "start the program with ddlrun, or with srun --mpi=pmix or --mpi=pmi2";
constexpr char kUnderPmi[] =
    "libddl finds its peers through PMIx or PMI-1: start the program with ddlrun, or with a launcher that "
    "serves one of these";
constexpr char kUnderMpirun[] =
    "start the program with ddlrun, or with an mpirun whose libpmix this process can reach";

constexpr SizeVariable kSizeVariables[] = {
    {contract::env::kSize, kUnderDdlrun},
    {"OMPI_COMM_WORLD_SIZE", kUnderMpirun},
    {"PMI_SIZE", kUnderPmi},
    {"MV2_COMM_WORLD_SIZE", kUnderPmi},
    {"PALS_LOCAL_SIZE", kUnderPmi},
    {"FLUX_JOB_SIZE", kUnderPmi},
    {"JSM_NAMESPACE_SIZE", kUnderPmi},
    {"SLURM_STEP_NUM_TASKS", kUnderSlurm},
    {"SLURM_NTASKS", kUnderSlurm},
    {contract::env::kTorchWorldSize, kUnderDdlrun},
};

/// A variable that only a launcher sets, and that holds a rank: a rank above 0 means that there are others.
constexpr SizeVariable kRankVariables[] = {
    {"PALS_RANKID", kUnderPmi},
    {"PMI_RANK", kUnderPmi},
};

}  // namespace

std::string WorldHint::sentence() const {
  return variable + "=" + value + " says that this process is one of several, but no launcher answers; " +
         remedy + ", or set " + contract::env::kAllowSingleton + "=1 if a world of one is meant";
}

std::optional<WorldHint> hinted_world(const Environment& environment) {
  bool is_size_one = false;
  for (const auto& [name, remedy] : kSizeVariables) {
    const auto value = environment(name);
    if (!value || value->empty()) continue;
    // A value that is not a number is as suspicious as a number above 1.
    if (parse_integer(*value) != 1) return WorldHint{name, *value, remedy};
    is_size_one = true;
  }
  for (const auto& [name, remedy] : kRankVariables) {
    const auto value = environment(name);
    if (value && !value->empty() && parse_integer(*value) != 0) return WorldHint{name, *value, remedy};
  }
  // PMIx gives a process its rank in the environment and the size only through the server, so a rank alone must be
  // taken for one of several.
  if (const auto rank = environment(contract::env::kPmixRank); rank && !rank->empty() && !is_size_one) {
    return WorldHint{contract::env::kPmixRank, *rank, kUnderDdlrun};
  }
  return std::nullopt;
}

}  // namespace ddl::runtime
