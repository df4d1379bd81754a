// The canonical reduction tree over hosts: the messages between hosts along it, and its evaluation by a rank that has
// all inputs. Every default algorithm evaluates this tree for every element, so all of them give the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {

// The messages between hosts that combine one value of every host to one value of all hosts.
//
// The canonical tree. Hosts are in the order of their lowest ranks. With H hosts, P the largest power of two up to H
// and R = H - P, the first 2R hosts form pairs (0,1), (2,3), ...: the second of a pair first sends its value to the
// first, its *stand-in*, and gets the result from it at the end. The P hosts that take part are numbered in order; in
// step k each exchanges with the one whose number differs in bit k. The value of the lower number is always the left
// operand. So every result is one fixed tree over neighbouring hosts, from left to right, and both partners of a step
// compute it from the same operands: the same bits.
//
// A broadcast goes along the edges of the same tree, so a host needs connections to few others: at most log2(P) + 1.
//
// Pure functions; every host computes its own steps.

/// Consecutive units of a buffer. The meaning of a unit depends on the collective: see each function.
struct UnitRange {
  int first = 0;
  int count = 0;
  bool operator==(const UnitRange&) const = default;
};

/// What becomes of a received value.
enum class Merge {
  kReplace,      ///< it replaces the old value
  kPeerOnRight,  ///< own op received
  kPeerOnLeft,   ///< received op own
  kAside,        ///< it is kept beside the value
};

/// With up to this number of hosts every lane is connected with all others from the start, so algorithms that need
/// the mesh cost nothing more; with more hosts it is connected when a collective first needs it.
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
HostSteps tree_steps(int hosts, int own);

/// The same for a value of this number of units, by recursive halving and doubling. In step k of the first phase the
/// two partners of the tree's step k have the same range of units: the lower number combines and keeps the first half
/// of it, the other one the second. The second phase goes back through the same partners and exchanges the combined
/// ranges. So every unit is combined along the tree, each of the P hosts sends and receives 2 (1 - 1/P) times the
/// value, and there are twice as many steps. root: -1, or the only host that gets the complete value; only units on
/// the way to it are sent back.
HostSteps halving_steps(int hosts, int own, int units, int root = -1);

/// What goes one way with a step of tree_steps() if values are kept apart and not combined.
struct TreeTraffic {
  std::vector<int> from;  ///< the hosts whose values it carries, ascending
  std::vector<int>
      to;  ///< the hosts that get them by this step: the partner, and others by its later steps; ascending
  bool operator==(const TreeTraffic&) const = default;
};
struct TreeStep : HostStep {
  TreeTraffic sent, received;
};
/// The value of every host, on every host, once.
std::vector<TreeStep> gathering_steps(int hosts, int own);

/// One unit per host. First each unit goes once around the ring, starting at the host after the one with its number,
/// and every host on the way combines it with its own, so that unit h ends on host h; then the result goes around
/// once more and replaces the old values. Unit h is combined in the order h+1, h+2, ..., h, from left to right: not
/// that of the tree. The step with the next host and the step with the previous one are taken at the same time.
std::vector<HostSteps> ring_steps(int hosts, int own);

/// One unit: the value of root's host, on every host.
HostSteps broadcast_steps(int hosts, int own, int root);

/// The pairs of hosts whose values are combined, in a valid order: the left value becomes op(left, right), and at the
/// end host 0's value is that of all. The same tree, for a rank that has the values of all hosts.
std::vector<std::pair<int, int>> tree_pairs(int hosts);

/// The partners of host own in all of these steps except the ring's, ascending.
std::vector<int> partner_hosts(int hosts, int own);

// The result of a reduction along the canonical tree, computed by a rank that has the inputs of all ranks.

/// The ranks of each host in order, then the hosts along the tree of hosts: the same bits as every other algorithm.
class CanonicalReduction {
 public:
  /// layout outlives this.
  CanonicalReduction(const Reduction& reduction, const HostLayout& layout);

  /// inputs: count elements of every rank of the layout, by rank; null for a rank that contributes no data, and not all
  /// are null. out may be an input for which may_write_over() is true, and must not overlap any other.
  void reduce(std::span<const std::byte* const> inputs, std::byte* out, std::size_t count);

  /// inputs_before: the number of ranks before that of the input that give data.
  bool may_write_over(int inputs_before) const { return layout_.host_count() > 1 || inputs_before < 2; }

 private:
  Reduction reduction_;
  Reduction merge_;  ///< of partial results
  const HostLayout& layout_;
  std::vector<std::byte> partials_;  ///< of the hosts, in order
};

}  // namespace ddl::runtime
