// Writes the text of a job script: finds the templates (the user's own before the shipped ones), and fills in the job.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "templates/profile/site_profile.h"
#include "templates/script/batch_job.h"

namespace ddl::templates {

// The templates of job scripts. Those of the admin or the user replace those that ddlrun was built with.

struct TemplateText {
  std::string file;  ///< what errors call it
  std::string text;
};

struct ScriptTemplates {
  TemplateText frame;
  std::map<std::string, TemplateText> partials;  ///< by name: "directives"
};

using ReadTemplate = std::function<Result<std::string>(const std::string& path)>;

/// frame_file: the user's own instead of job.sh; "" for none. folders: where NAME.mustache replaces the shipped
/// template of that name, the first folder that has it. Error: a file that is there cannot be read.
Result<ScriptTemplates> find_templates(const std::string& frame_file, const std::vector<std::string>& folders,
                                       const ReadTemplate& read_file);

// Renders a job as the text of its script.

/// Renders the templates over what docs/reference/script-templates.md lists. Pure. site: null where none is named.
/// warnings: sentences that become comments of the script. Every word from the user is quoted for the shell. Error
/// kInvalidArgument: an invalid template, with its file and line; a value that no directive can hold.
Result<std::string> render_script(const ScriptTemplates& templates, const ScriptRequest& request,
                                  const BatchJob& job, const SiteProfile* site,
                                  const std::vector<std::string>& warnings);

}  // namespace ddl::templates
