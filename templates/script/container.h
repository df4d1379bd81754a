// How a rank runs in a container: by words before its command, or by options of the srun that starts it.
#pragma once

#include <string>
#include <vector>

#include "templates/profile/site_profile.h"
#include "templates/script/batch_job.h"

namespace ddl::templates {

struct ContainerLaunch {
  std::vector<std::string> words;         ///< before the command, quoted for bash: "apptainer", "exec", ...
  std::vector<std::string> srun_options;  ///< not quoted: "--container-image=image.sqsh"
};

/// Pure. The request names an image.
ContainerLaunch container_launch(const ScriptRequest& request, const BatchJob& job, const SiteProfile* site);

}  // namespace ddl::templates
