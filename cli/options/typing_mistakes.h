// Common typing mistakes in a command line: dashes and quotes of a printed page, an option in the place of a value, "~"
// that no shell has replaced. Each is refused with a sentence about it; otherwise it would become the name of a program,
// a folder or a host.
#pragma once

#include <string>
#include <string_view>

#include "cli/options/given_options.h"

namespace ddl::cli {

/// Whether a word begins with a dash or a quote that no shell knows, as in "–np" and "“python".
bool begins_typographically(std::string_view word);
/// Refuses such a word, and says what to type. Pure.
Status refuse_typographic(const std::string& word);

/// Refuses a value that is quoted typographically or is itself an option. Only of the command line. Pure.
Status refuse_mistyped_value(const GivenOptions& given);

/// Refuses a name of a file or folder that begins with "~" or with a variable: a shell does not replace "~" behind a
/// "=" and in quotes, and nothing is replaced in a configuration file. Pure.
Status refuse_unexpanded(const GivenOptions& given);

}  // namespace ddl::cli
