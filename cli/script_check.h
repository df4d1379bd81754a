// What speaks against a job script before anybody waits in a queue for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "templates/site_profile.h"

namespace ddl::cli {

struct ScriptObjections {
  std::vector<std::string> errors;  ///< sentences
  std::vector<std::string> warnings;
};

/// What the rules say of the script's text. Pure. site: null where none is named.
ScriptObjections check_script(std::string_view script, const templates::SiteProfile* site);

}  // namespace ddl::cli
