// Which algorithm a call takes: a table of measured crossovers, and what a user says instead.
//
// Every algorithm that the table chooses gives the same bits. Ranks must choose alike, so the choice depends on what they
// have all called, and an algorithm that a user names is compared like the rest of a call.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/src/common/call.h"

namespace ddl::runtime {

/// What a choice depends on.
struct Situation {
  CallKind kind = CallKind::kNone;
  std::uint64_t bytes = 0;  ///< of one rank's input, as partial results
  int hosts = 1;
  int parts = 1;  ///< ranks on one host; on several, lanes
};

/// The table's choice; kAuto for collectives that have one way only.
Algorithm choose(const Situation& situation);

/// What the call takes: what it names, if that is for so many hosts, otherwise the table's choice.
Algorithm algorithm_of(const Call& call, const Situation& situation);

/// The table for a person, a rule a line.
std::string explain_choices();

}  // namespace ddl::runtime
