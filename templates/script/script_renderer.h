// A job into the text of its script.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "templates/script/batch_job.h"
#include "templates/script/script_request.h"
#include "templates/script/script_templates.h"
#include "templates/site_profile.h"

namespace ddl::templates {

/// Renders the templates over what docs/reference/script-templates.md lists. Pure. site: null where none is named.
/// warnings: sentences that stand in the script as comments. Every word of the user's is quoted for the shell. Error
/// kInvalidArgument: a template that is wrong, with its file and line; a value that no directive can hold.
Result<std::string> render_script(const ScriptTemplates& templates, const ScriptRequest& request,
                                  const BatchJob& job, const SiteProfile* site,
                                  const std::vector<std::string>& warnings);

}  // namespace ddl::templates
