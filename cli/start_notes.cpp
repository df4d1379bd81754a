#include "cli/start_notes.h"

#include "cli/slurm_notice.h"

namespace ddl::cli {

std::vector<std::string> start_notes(const launcher::JobSpec& job, const launcher::Environment& environment) {
  std::vector<std::string> notes;
  if (auto slurm = slurm_notice(environment)) notes.push_back(std::move(*slurm));
  for (const launcher::EnvironmentExport& one : job.exports) {
    if (!one.value && !environment.contains(one.name)) {
      notes.push_back("-x " + one.name + ": " + one.name + " is not set here, so the ranks do not get it");
    }
  }
  return notes;
}

}  // namespace ddl::cli
