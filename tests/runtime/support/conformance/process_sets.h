// What the checks of process sets share, however a set was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/support/conformance/communicator.h"

namespace ddl::conformance {

using Ranks = std::vector<std::int32_t>;

/// No set will ever have this number.
inline constexpr std::uint64_t kUntouched = 0x5A5A'5A5A'5A5A'5A5A;

void expect_refused(ddl_status status, const std::string& part);
/// Every collective once, with roots that change.
void check_collectives(const Communicator& comm);
/// Checks that the set has these ranks in this order, on its members and on the others.
void check_set(const Communicator& world, std::uint64_t set, const Ranks& wanted);

}  // namespace ddl::conformance
