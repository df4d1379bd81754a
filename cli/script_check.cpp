#include "cli/script_check.h"

namespace ddl::cli {

ScriptObjections check_script(std::string_view, const templates::SiteProfile*) { return {}; }

}  // namespace ddl::cli
