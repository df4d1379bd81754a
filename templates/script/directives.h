// What stands behind #SBATCH.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "templates/script/batch_job.h"
#include "templates/script/script_request.h"
#include "templates/site_profile.h"

namespace ddl::templates {

/// "--nodes=2" and so on, in the order in which a script has them, quoted as sbatch reads them. Pure. Error
/// kInvalidArgument: a value with a line break, which no directive can hold.
Result<std::vector<std::string>> directives_of(const ScriptRequest& request, const BatchJob& job,
                                               const SiteProfile* site);

}  // namespace ddl::templates
