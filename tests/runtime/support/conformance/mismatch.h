// Calls that do not fit together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/support/conformance/place.h"

namespace ddl::conformance {

constexpr std::uint64_t kMismatchCount = 10;

/// One rank's call. Buffers hold kMismatchCount elements of 4 bytes per rank.
struct Variant {
  std::string differs;  ///< what is different about it, for the messages of the suite
  /// Parts of what the sentence has to say of the call: its name first.
  std::vector<std::string> said;
  std::function<ddl_status(const Place&, float* send, float* recv)> call;
};

/// What most ranks call, and in which ways one of them calls something else.
struct Disagreement {
  Variant usual;
  std::vector<Variant> odd;
};

/// For every collective.
std::vector<Disagreement> disagreements();

/// Makes the calls and checks what all ranks are told, that nothing was written, and that the process set is usable.
void check_mismatch(const Place& place, const Variant& usual, const Variant& odd, int odd_rank);

/// An alltoallv for whose parts one rank has no room: that shows only when all have said what they send.
void check_too_little_room(const Place& place, int odd_rank);

}  // namespace ddl::conformance
