// Adasum (Maleki et al. 2021) of slices of tensors: the arithmetic, and the tree by which the ranks' tensors are
// combined. Pure functions.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "ddl/ddl.h"

namespace ddl::runtime {

/// Of two tensors a and b. Those of slices add up to those of the whole tensors.
struct AdasumDots {
  double aa = 0, bb = 0, ab = 0;
};

/// Of count elements of DDL_FLOAT32 or DDL_FLOAT64. The bits depend on the elements and their number alone.
AdasumDots adasum_dots(ddl_dtype dtype, const std::byte* a, const std::byte* b, std::size_t count);

/// a becomes (1 - ab / 2aa) a + (1 - ab / 2bb) b, computed in double and rounded once. dots: of the whole tensors. A
/// tensor whose square is hardly above 0 has the factor 1.
void adasum_combine(ddl_dtype dtype, const AdasumDots& dots, std::byte* a, const std::byte* b,
                    std::size_t count);

/// Which ranks' values are combined when those of this number of neighbours have been, a power of two: the left one
/// becomes adasum(left, right). A last one without a partner is not changed. After the last level, whose distance is at
/// least half the number of ranks, rank 0's value is that of all.
std::vector<std::pair<int, int>> adasum_pairs(int ranks, int distance);

}  // namespace ddl::runtime
