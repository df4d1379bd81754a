// What all ranks' elements come to along the canonical tree, for who has everybody's inputs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {

/// The ranks of each host in order, then the hosts by host_steps.h's tree: the bits that every other way gives.
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
