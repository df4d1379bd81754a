// Which algorithm a call takes: a table of measured crossovers, and what a user says instead.
//
// Every algorithm that the table chooses gives the same bits. Ranks must choose alike, so the choice depends on what they
// have all called, and an algorithm that a user names is compared like the rest of a call.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "runtime/src/channel/call.h"

namespace ddl::runtime {

enum class Algorithm : std::uint8_t {
  kAuto = 0,     ///< what the table says
  kWhole = 1,    ///< one host: every rank combines all inputs itself
  kSlices = 2,   ///< one host: every rank combines one slice, and shows it to the others
  kTree = 3,     ///< hosts: values go whole along the canonical tree
  kUnits = 4,    ///< hosts: every host combines one unit of all hosts' values, and gives it to the others
  kHalving = 5,  ///< hosts: values go along the canonical tree, half as much in each step, and back
  /// Hosts: units go around from neighbour to neighbour; only if named, and with an order of its own.
  kRing = 6,
};

/// "slices".
const char* algorithm_name(Algorithm algorithm);

/// What a choice depends on.
struct Situation {
  CallKind kind = CallKind::kNone;
  std::uint64_t bytes = 0;  ///< of one rank's input, as partial results
  int hosts = 1;
  int parts = 1;  ///< ranks on one host; on several, lanes
};

/// The table's choice; kAuto for collectives that have one way only.
Algorithm choose(const Situation& situation);

/// What a user says instead: "allreduce=halving,reduce=tree". Where one names an algorithm that is not for the number of
/// hosts, the table's choice stands.
class AlgorithmOverrides {
 public:
  /// An error that names the part that cannot be meant, and what could stand there.
  static Result<AlgorithmOverrides> parse(std::string_view text);
  Algorithm of(CallKind kind) const { return chosen_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<Algorithm, 16> chosen_{};
};

/// What the call takes: what it names, if that is for so many hosts, otherwise the table's choice.
Algorithm algorithm_of(const Call& call, const Situation& situation);

/// The table for a person, a rule a line.
std::string explain_choices();

}  // namespace ddl::runtime
