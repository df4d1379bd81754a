// What is to become of a job script.
#pragma once

#include <string>

#include "templates/script/batch_job.h"

namespace ddl::cli {

struct ScriptTask {
  templates::ScriptRequest request;
  std::string site;           ///< "" for none; as --site, --show-site have it
  std::string template_file;  ///< "" for the shipped frame
  std::string script_file;    ///< "" for standard output
  bool overwrites = false;
  bool submits = false;
  bool tests_only = false;
  std::string lint_file;  ///< the script that a person wrote
};

}  // namespace ddl::cli
