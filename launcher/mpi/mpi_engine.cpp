#include "launcher/mpi/mpi_engine.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/process.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"
#include "contract/rank_process.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::launcher {

int become_mpirun(const std::vector<std::string>& words) {
  namespace env = contract::env;
  std::vector<std::string> own = {"OMPI_MCA_schizo",
                                  "OMPI_MCA_ess",
                                  "OMPI_MCA_hwloc_base_binding_policy",
                                  "OMPI_MCA_orte_externally_bound",
                                  env::kRank,
                                  env::kSize,
                                  env::kLocalRank,
                                  env::kLocalSize,
                                  env::kCrossRank,
                                  env::kCrossSize,
                                  env::kHostname,
                                  env::kTorchRank,
                                  env::kTorchWorldSize,
                                  env::kTorchLocalRank,
                                  env::kTorchLocalWorldSize,
                                  env::kReportStart,
                                  env::kExitRecord};
  // What mpirun keeps in files here goes with the agent's, also where nobody lets mpirun end in order.
  // Its ranks get their own TMPDIR back.
  if (const char* directory = std::getenv("PMIX_SERVER_TMPDIR"); directory != nullptr)
    ::setenv("TMPDIR", directory, 1);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    const std::string name(*entry, equals != nullptr ? static_cast<std::size_t>(equals - *entry) : 0);
    if (is_denied(name)) own.push_back(name);
  }
  for (const std::string_view name : split(words[1], ',')) own.emplace_back(name);
  for (const std::string& name : own) ::unsetenv(name.c_str());
  if (!words[0].empty()) ::setenv(env::kMasterAddr, words[0].c_str(), 1);
  ::close(contract::kPmiFd);
  ::close(contract::kExitRecordFd);
  const std::vector<std::string> command(words.begin() + 2, words.end());
  const Error error = become(command);
  std::fprintf(stderr, "ddlrun: %s\n", error.message().c_str());
  return error.code() == ErrorCode::kNotFound ? contract::kNotFound : contract::kNotExecutable;
}

}  // namespace ddl::launcher
