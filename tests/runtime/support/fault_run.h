// One rank dies or is stopped at one point of one call, and the errors that all ranks must report.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/support/fault_case.h"

namespace ddl::runtime::test {

/// The points that each rank passes, by name.
using FaultTrace = std::vector<std::map<std::string, Passages>>;

/// Runs the scene without a fault.
FaultTrace trace_of(const FaultScene& scene);

enum class Fault {
  kDeath,  ///< SIGKILL: all other ranks report which rank died
  kStop,   ///< SIGSTOP, with a timeout: all others, and later the stopped rank, report which rank is missing
  kGoingOn,  ///< SIGSTOP, and SIGCONT when all others wait: no rank notices
};

struct FaultRun {
  const FaultScene* scene = nullptr;
  Fault fault = Fault::kDeath;
  std::string point;
  int victim = 0;
  std::int64_t passage = 1;
  bool spins = false;  ///< waits poll memory before they sleep

  /// "death at allreduce.before_publish:1:7, allreduce by slices on one host".
  std::string name() const;
};

/// A description of what was wrong; "" if nothing was.
std::string complaints_of(const FaultRun& run);
/// What complaints_of() returns if no rank passed the point as often as the fault needs: that depends on time.
inline constexpr char kNotReached[] = "not reached";

}  // namespace ddl::runtime::test
