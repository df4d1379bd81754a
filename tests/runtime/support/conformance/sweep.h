// Many trials of one collective.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/trial.h"

namespace ddl::conformance {

/// Some of the counts, for collectives that share their algorithms with one that is tried with all counts.
std::vector<std::uint64_t> few_of(const std::vector<std::uint64_t>& counts);

/// count elements dealt out to ranks in one of four ways: evenly, all to the last, growing with zeros, every other
/// none.
constexpr int kSplits = 4;
std::vector<std::uint64_t> split_of(std::uint64_t count, int ranks, int way);
/// The same for the counts of an alltoallv, every sender in another way.
std::vector<std::uint64_t> split_pairs_of(std::uint64_t count, int ranks, int way);

/// Every type and count with every operation, root and split, or, of each that is not to be tried in full, with one
/// of them that changes from trial to trial.
struct Sweep {
  bool every_op = false;
  bool every_root = false;
  bool every_split = false;
};
void sweep(const Communicator& comm, Collective collective, const std::vector<std::uint64_t>& counts,
           Sweep what);

}  // namespace ddl::conformance
