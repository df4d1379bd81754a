// The options of binding: text in, a policy or a refusal out.
#pragma once

#include <tl/expected.hpp>

#include "affinity/plan/binding_plan.h"
#include "cli/command_line_error.h"
#include "cli/given_options.h"
#include "cli/options.h"
#include "cli/value_reader.h"

namespace ddl::cli {

/// All but BindingPolicy::oversubscribe.
void read_binding(ValueReader& values, affinity::BindingPolicy& policy);

/// request.binding_view and the job's policy, for --show-bind and --explain-bind.
tl::expected<Request, CommandLineError> read_binding_view(Request request, const GivenOptions& given);

}  // namespace ddl::cli
