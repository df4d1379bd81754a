// The virtual environments that scripts/frameworks makes.
#pragma once

#include <optional>
#include <string>

namespace ddl::frameworks {

/// The Python of an environment of environments.json. If it is not there, a line says why the test is skipped; if it is
/// required (DDL_REQUIRE_FRAMEWORKS=1), the test case fails.
std::optional<std::string> python_of(const std::string& environment);

}  // namespace ddl::frameworks
