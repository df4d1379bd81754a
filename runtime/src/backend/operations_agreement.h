// All ranks of a job say who is to carry out their collectives, and how much goes in one step: it has to be the same.
#pragma once

#include "base/error.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// Before the fence.
Status put_operations(Bootstrap& bootstrap, const Settings& settings);
/// After it. kInvalidArgument: another rank has put something else, which is named.
Status check_same_operations(Bootstrap& bootstrap, const Settings& settings);

}  // namespace ddl::runtime
