// The process set on which a check is made, from the view of one of its ranks: what MPI calls a communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/support/reference.h"

namespace ddl::conformance {

struct Communicator {
  ddl_context* context = nullptr;
  std::uint64_t set = DDL_WORLD;
  int rank = 0;  ///< in the set
  int size = 1;
  std::vector<std::int32_t> ranks;  ///< of the job, by their ranks in the set
  Groups groups;                    ///< ranks in the set, by hosts

  ddl_call_options options() const;
};

/// The world, from the local and cross ranks that every rank reports, which are checked. Collective.
Communicator world_of(ddl_context* context);
/// A process set of it that this rank is a member of. Not collective.
Communicator communicator_of(const Communicator& world, std::uint64_t set);

}  // namespace ddl::conformance
