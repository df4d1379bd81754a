// The canonical reduction tree over hosts: who sends what to whom along it, and its value where one rank has all inputs.
// Every default algorithm evaluates this tree for every element, so all of them give the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {

// Who sends what to whom when one value of every host is to become one value of all hosts.
//
// The canonical tree. Hosts stand in the order of their lowest ranks. With H hosts, P the largest power of two up to H and
// R = H - P, the first 2R hosts stand in pairs (0,1), (2,3), ...: the second of a pair first gives its value to the
// first, its *stand-in*, and gets the result from it at the end. The P hosts that take part are numbered in order; in
// step k each exchanges with the one whose number differs in bit k. The value of the lower number always stands on the
// left. So every result is one fixed tree over neighbouring hosts, from left to right, and both partners of a step
// compute it from the same operands: the same bits.
//
// A broadcast walks along the edges of the same tree, so a host needs connections to few others: at most log2(P) + 1.
//
// Pure functions; every host computes its own steps.

/// Neighbouring units of a buffer. What a unit is depends on the collective: see each function.
struct UnitRange {
  int first = 0;
  int count = 0;
  bool operator==(const UnitRange&) const = default;
};

/// What becomes of a received value.
enum class Merge {
  kReplace,      ///< it takes the place of what was there
  kPeerOnRight,  ///< own op received
  kPeerOnLeft,   ///< received op own
  kAside,        ///< it is kept beside the value
};

/// With up to so many hosts every lane is connected with all others from the start, and algorithms that need it cost
/// nothing more; with more hosts, only once a collective needs it.
inline constexpr int kMeshHosts = 16;

/// One exchange with one other host; either direction may be empty.
struct HostStep {
  int host = 0;
  UnitRange send;
  UnitRange recv;
  Merge merge = Merge::kReplace;
  bool operator==(const HostStep&) const = default;
};

using HostSteps = std::vector<HostStep>;

/// One unit: the value. The value of every host, combined along the tree, on every host.
HostSteps allreduce_steps(int hosts, int own);

/// The same for a value of so many units, by recursive halving and doubling. In step k of the first half the two partners
/// of the tree's step k have the same range of units: the lower number combines and keeps the first half of it, the other
/// one the second. The second half goes back and puts the ranges together again. So every unit is combined along the
/// tree, each number sends and receives every unit once each way, and there are as many steps again.
/// root: -1, or the only host that gets the whole value; what is not on its way there is not sent back.
HostSteps halving_steps(int hosts, int own, int units, int root = -1);

/// One unit a host. First each unit goes once around, from the host after the one with its number, and every host on the
/// way combines it with its own, so that unit h ends on host h; then it goes around once more, and takes the place of what
/// is there. Unit h's order is h+1, h+2, ..., h, from left to right: not that of the tree. A step with the next host and
/// one with the one before are taken at once.
std::vector<HostSteps> ring_steps(int hosts, int own);

/// One unit: the value of root's host, on every host.
HostSteps broadcast_steps(int hosts, int own, int root);

/// The pairs of hosts whose values become one, in an order in which that can be done: the left one's is op(left, right)
/// afterwards, and host 0's is that of all. The same tree, for who has everybody's values.
std::vector<std::pair<int, int>> tree_pairs(int hosts);

/// The hosts that own meets in any of these steps, ascending.
std::vector<int> partner_hosts(int hosts, int own);

// The result of a reduction along the canonical tree, computed by a rank that has the inputs of all ranks.

/// The ranks of each host in order, then the hosts along the tree of hosts: the same bits as every other algorithm.
class CanonicalReduction {
 public:
  /// layout outlives this.
  CanonicalReduction(const Reduction& reduction, const HostLayout& layout);

  /// inputs: count elements of every rank of the layout, by rank. out may be that of a rank that may_write_over(), and
  /// overlaps no other.
  void reduce(std::span<const std::byte* const> inputs, std::byte* out, std::size_t count);

  bool may_write_over(int rank) const { return layout_.host_count() > 1 || rank < 2; }

 private:
  Reduction reduction_;
  Reduction merge_;  ///< of partial results
  const HostLayout& layout_;
  std::vector<std::byte> partials_;  ///< of the hosts, one after the other
};

}  // namespace ddl::runtime
