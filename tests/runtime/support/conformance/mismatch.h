// Calls that do not match.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/support/conformance/communicator.h"

namespace ddl::conformance {

constexpr std::uint64_t kMismatchCount = 10;

/// One rank's call. Buffers hold kMismatchCount elements of 4 bytes per rank.
struct Variant {
  std::string differs;  ///< how it differs, for the messages of the suite
  /// Parts of the error message that describe the call: its name first.
  std::vector<std::string> message_parts;
  std::function<ddl_status(const Communicator&, float* send, float* recv)> call;
};

/// The call of most ranks, and the variants that one of them calls instead.
struct Disagreement {
  Variant usual;
  std::vector<Variant> mismatched;
};

/// For every collective.
std::vector<Disagreement> disagreements();

/// Makes the calls and checks the errors of all ranks, and that nothing was written.
void check_mismatch(const Communicator& comm, const Variant& usual, const Variant& mismatched,
                    int mismatched_rank);

/// An alltoallv in which one rank has too little space: this is detected only after all have exchanged their counts.
void check_too_little_room(const Communicator& comm, int mismatched_rank);

}  // namespace ddl::conformance
