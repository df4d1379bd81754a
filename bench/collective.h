// The collectives that are measured: what one call moves, and what a right result looks like. Pure; the harness and the
// rank programs share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ddl::bench {

enum class Collective { kAllreduce, kAllgather, kAlltoall, kBroadcast, kReduceScatter };

const std::vector<Collective>& all_collectives();
/// "reduce-scatter", and back.
const char* name_of(Collective what);
std::optional<Collective> parse_collective(std::string_view name);
/// What one call does, for a title: "f32 sum in place".
const char* describe(Collective what);

/// Allreduce and broadcast work in one buffer, the others from one into another: as programs mostly call them, and as
/// every peer can.
bool is_in_place(Collective what);

/// A message's size is that of the larger buffer of a rank: the whole vector of allreduce and broadcast, all ranks' parts
/// of the others. This is the size nearest to the wanted one, and not below it, that has equal parts of whole floats.
std::uint64_t whole_bytes(Collective what, std::uint64_t wanted, int ranks);

/// How many parts a rank gives, and how many its result has. Each part is as long as the whole buffer, where both are 1,
/// or as one rank's share of it.
struct Shape {
  int sent_parts = 1;
  int result_parts = 1;
  bool has_shares = false;  ///< a part is 1/ranks of the size
};
Shape shape_of(Collective what, int ranks);

/// What rank sends as this part in this turn, and what it must find as this part of its result. Small whole numbers: their
/// sums are exact in any order. Of a broadcast, rank 0 is the root.
float sent_value(Collective what, int rank, int ranks, int part, int turn);
float expected_value(Collective what, int rank, int ranks, int part, int turn);

/// Bytes that every host must send over its link at least, divided by the size, if each has one rank: what no algorithm
/// can avoid. A host of a broadcast may pass on what it receives.
double least_sent(Collective what, int hosts);

}  // namespace ddl::bench
