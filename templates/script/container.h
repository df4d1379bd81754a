// How a rank runs in a container: by words before its command, or by options of the srun that starts it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "templates/profile/site_profile.h"
#include "templates/script/batch_job.h"

namespace ddl::templates {

/// The runtime that the request or the site names; "" for apptainer or singularity, whichever is there. Pure.
std::string runtime_of_container(const ScriptRequest& request, const SiteProfile* site);

/// Whether what sees the GPUs in the container depends on whose they are. Pure.
bool needs_gpu_vendor(const ScriptRequest& request, const BatchJob& job);

/// Refuses what the job's runtime cannot do. Pure.
Status check_container(const ScriptRequest& request, const BatchJob& job);

struct ContainerLaunch {
  std::vector<std::string> words;         ///< before the command, quoted for bash: "apptainer", "exec", ...
  std::vector<std::string> srun_options;  ///< not quoted: "--container-image=image.sqsh"
};

/// Pure. Without an image both are empty.
ContainerLaunch container_launch(const ScriptRequest& request, const BatchJob& job, const SiteProfile* site);

}  // namespace ddl::templates
