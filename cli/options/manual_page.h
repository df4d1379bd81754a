// The manual page ddlrun(1), from the table of options. Pure.
#pragma once

#include <string>

namespace ddl::cli {

/// In the macros man(7).
std::string manual_page();

}  // namespace ddl::cli
