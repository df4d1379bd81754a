// --check-build for a person.
#pragma once

#include <string>
#include <vector>

#include "cli/check_build/capability.h"

namespace ddl::cli {

/// horovodrun's look, "Available Frameworks:" and "[X]" lines, then what is known of each. Pure.
std::string check_build_text(const std::vector<Capability>& all);

/// One of them: "NCCL: built no, works here yes ...". With its newline. Pure.
std::string capability_line(const Capability& one);

}  // namespace ddl::cli
