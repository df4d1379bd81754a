// --config-file: options in a YAML file.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "cli/given_options.h"

namespace ddl::cli {

/// The options of a file. A key is an option without its dashes, with "_" as good as "-"; horovodrun's groups (params,
/// timeline, ...) hold its options as horovodrun has them. A flag takes true or false; what may be given several times,
/// and what is a list with commas on the command line, may be a list. Pure.
/// name: what messages call the file. Error: an unknown key, a value of the wrong kind, or an option that is not in
/// this version, each with file and line.
tl::expected<GivenOptions, CommandLineError> read_config(std::string_view text, std::string_view name);

}  // namespace ddl::cli
