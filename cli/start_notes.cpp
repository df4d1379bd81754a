#include "cli/start_notes.h"

namespace ddl::cli {

std::vector<std::string> start_notes(const launcher::JobSpec& job, const launcher::Environment& environment) {
  std::vector<std::string> notes;
  for (const launcher::EnvironmentExport& one : job.exports) {
    if (!one.value && !environment.contains(one.name)) {
      notes.push_back("-x " + one.name + ": " + one.name + " is not set here, so the ranks do not get it");
    }
  }
  return notes;
}

}  // namespace ddl::cli
