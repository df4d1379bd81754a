// ddl.hpp over whatever started the ranks. Not in programs that link libddl's insides: those have a ddl::Error too.
#pragma once

#include "ddl/ddl.hpp"

namespace ddl::conformance {

/// The C++ interface, which adds nothing but types: each method once. Collective; throws std::runtime_error.
void check_wrapper(Context& context);

}  // namespace ddl::conformance
