// --show-bind: a topology is loaded, planned on and printed.
#pragma once

#include <functional>
#include <string>

#include "affinity/plan/binding_policy.h"
#include "base/error.h"
#include "cli/binding_view.h"

namespace ddl::cli {

/// What is to be printed. read_file: as CommandLineContext::read_file. Errors name the file, or say what the node has too
/// little of for the policy.
Result<std::string> binding_report(const BindingView& view, const affinity::BindingPolicy& policy,
                                   const std::function<Result<std::string>(const std::string&)>& read_file);

}  // namespace ddl::cli
