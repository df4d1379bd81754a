// Which algorithm a call takes: a table of measured crossovers, and the user's overrides.
//
// Every algorithm that the table chooses gives the same bits. All ranks must choose the same, so the choice depends
// only on values that are the same on all ranks, and an algorithm that a user names is compared like the rest of a
// call.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/src/common/call.h"

namespace ddl::runtime {

/// The values that a choice depends on.
struct Situation {
  CallKind kind = CallKind::kNone;
  std::uint64_t bytes = 0;  ///< of one rank's input, as partial results
  int hosts = 1;
  int parts = 1;  ///< ranks on one host; on several, lanes
};

/// The table's choice; kAuto for collectives that have only one algorithm.
Algorithm choose(const Situation& situation);

/// The call's algorithm: the one that it names, if that is for this number of hosts, otherwise the table's choice.
Algorithm algorithm_of(const Call& call, const Situation& situation);

/// The table as text for people, one rule per line.
std::string explain_choices();

}  // namespace ddl::runtime
