// What looks have in common.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/check_build/capability.h"

namespace ddl::cli {

Finding works(std::string version, std::string file, std::string detail = {});
Finding fails(std::string detail, std::string remedy = {});

/// For a command that a look runs: within that of --check-build as a whole, so that the box says who was slow.
inline constexpr std::chrono::seconds kCommandPatience{17};

/// "in PATH", or a finding that says it is not, with what to do.
struct Command {
  std::string path;  ///< "": it is not there
  Finding missing;
};
Command command_in_path(const std::string& name, const std::string& remedy);

/// The first line that a command prints, on either stream, with exit code 0; else a finding that says what it did instead.
struct FirstLine {
  std::string text;  ///< "": it failed
  Finding failure;
};
FirstLine first_line_of(const std::vector<std::string>& argv);

}  // namespace ddl::cli
