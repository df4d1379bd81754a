// The way of one chunk's slice between hosts: what this rank sends to its partners and receives from them, in bytes.
//
// A route is a row of stages. All transfers of a stage are under way at once; a stage begins when the one before has ended
// and what it brought has been merged. What is sent comes from the slice's *value*; what is received goes over the value,
// or beside it where it has to be merged or laid out anew.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/collective/host_steps.h"

namespace ddl::runtime {

struct ByteRange {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const ByteRange&) const = default;
};

struct Transfer {
  int host = 0;
  ByteRange send;  ///< of the value
  /// Of the value if it replaces, or is merged with what is there; otherwise of what was received.
  ByteRange recv;
  Merge merge = Merge::kReplace;
  bool operator==(const Transfer&) const = default;
};

struct Stage {
  std::vector<Transfer> transfers;
  /// After the transfers: one value of every host's, along the canonical tree. Host h's is the unit_bytes from h times
  /// unit_bytes on of what was received; the own one is, and the result becomes, the value's range own.
  bool combines_all = false;
  std::size_t unit_bytes = 0;
  int own_host = 0;
  ByteRange own;
};

using Route = std::vector<Stage>;

/// Steps one after the other, over units of unit_bytes.
Route route_of(const HostSteps& steps, std::size_t unit_bytes);

/// Rounds of steps that are taken at once, over one unit a host, of units[h] bytes.
Route route_of(const std::vector<HostSteps>& rounds, const std::vector<std::size_t>& units);

/// The value is one unit a host, of units[h] bytes; host h's comes to be in everybody's value.
Stage allgather_stage(const std::vector<std::size_t>& units, int own);

/// The value is one unit a host, of units[h] bytes: host h gets all hosts' h-th and combines them.
Stage reduce_scatter_stage(const std::vector<std::size_t>& units, int own);

}  // namespace ddl::runtime
