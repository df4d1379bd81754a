// --show-bind, --explain-bind and --show-topology: a topology is loaded, planned on and printed.
#pragma once

#include <functional>
#include <string>

#include "affinity/plan/binding_plan.h"
#include "base/error.h"
#include "cli/options/request.h"

namespace ddl::cli {

using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// What is to be printed. read_file: as CommandLineContext::read_file; sites_folders: as config_folders() finds them. Errors
/// name the file, or say what the node has too little of for the policy.
Result<std::string> binding_report(const BindingView& view, affinity::BindingPolicy policy,
                                   const ReadFile& read_file, const std::vector<std::string>& sites_folders);

}  // namespace ddl::cli
