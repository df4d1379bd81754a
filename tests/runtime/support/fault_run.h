// One rank dies or is stopped at one moment of one call, and what all ranks must say of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/support/fault_case.h"

namespace ddl::runtime::test {

/// How often a rank passes a point: before the call under test, and in it.
struct Passages {
  std::int64_t before = 0;
  std::int64_t during = 0;
};

/// The points that each rank passes, by name.
using FaultTrace = std::vector<std::map<std::string, Passages>>;

/// Runs the scene without a fault.
FaultTrace trace_of(const FaultScene& scene);

enum class Fault {
  kDeath,  ///< SIGKILL: everybody else is told who died
  kStop,  ///< SIGSTOP, and the calls have a timeout: everybody else is told who is missing, and the stopped rank afterwards
  kGoingOn,  ///< SIGSTOP, and SIGCONT when all others wait: nothing has happened
};

struct FaultRun {
  const FaultScene* scene = nullptr;
  Fault fault = Fault::kDeath;
  std::string point;
  int victim = 0;
  std::int64_t passage = 1;
  bool spins = false;  ///< waits look at memory before they sleep

  /// "death at allreduce.before_publish:1:7, allreduce by slices on one host".
  std::string name() const;
};

/// What was not as it must be; "" if nothing was.
std::string complaints_of(const FaultRun& run);

}  // namespace ddl::runtime::test
