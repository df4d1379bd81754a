// ddl.hpp under any launcher. Not for programs that link libddl's implementation, which has its own ddl::Error.
#pragma once

#include "ddl/ddl.hpp"

namespace ddl::conformance {

/// Calls each method of the C++ interface once. Collective; throws std::runtime_error.
void check_wrapper(Context& context);

}  // namespace ddl::conformance
