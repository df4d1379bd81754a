// The variables that ranks need at a site, by its profile: as values for ranks that ddlrun starts, and as lines of shell
// for a job script. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "templates/profile/site_profile.h"

namespace ddl::templates {

/// A job as far as the variables depend on it.
struct SiteJob {
  std::size_t nodes = 1;
  std::string user;       ///< who starts it
  std::string slurm_job;  ///< its number; "": it is not in a Slurm job
  std::string
      loaded_modules;  ///< as environment modules and Lmod have them in LOADEDMODULES: "GCC/13.2.0:NCCL/2.26"
};

/// All of them, also those that only a missing module would set, each name once. A job script has those of
/// SiteSetup::needed only if the user writes them.
std::vector<SiteVariable> site_environment(const SiteSetup& setup, const SiteJob& job);

/// Lines of shell that export what depends on the job: the variables by its number of nodes, and the folders of each
/// node. Not those that are in given.
std::vector<std::string> site_lines(const SiteSetup& setup, const std::vector<SiteVariable>& given);

}  // namespace ddl::templates
