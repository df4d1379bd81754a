// What shells need to complete ddlrun's command lines, from the table of options. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::cli {

enum class Shell { kBash, kZsh, kFish };

/// "bash", "zsh" or "fish".
Result<Shell> parse_shell(std::string_view text);

/// A script for the shell: it completes options, their values where these are words, files, folders, names of sites or
/// hosts, and then the command as the shell does by itself.
std::string completion_for(Shell shell);

}  // namespace ddl::cli
