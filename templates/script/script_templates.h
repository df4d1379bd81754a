// The templates of job scripts: an admin's or the user's own before those that ddlrun was built with.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::templates {

struct TemplateText {
  std::string file;  ///< what errors call it
  std::string text;
};

struct ScriptTemplates {
  TemplateText frame;
  std::map<std::string, TemplateText> partials;  ///< by name: "directives"
};

using ReadTemplate = std::function<Result<std::string>(const std::string& path)>;

/// frame_file: the user's own instead of job.sh; "" for none. folders: where NAME.mustache replaces the shipped template of
/// that name, the first folder that has it. Error: a file that is there cannot be read.
Result<ScriptTemplates> find_templates(const std::string& frame_file, const std::vector<std::string>& folders,
                                       const ReadTemplate& read_file);

}  // namespace ddl::templates
