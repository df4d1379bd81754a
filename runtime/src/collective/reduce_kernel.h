// The reduction of one chunk: the innermost loop of an allreduce.
#pragma once

#include <cstddef>
#include <span>

#include "ddl/ddl.h"

namespace ddl::runtime {

/// out[e] = inputs[0][e] op inputs[1][e] op ..., from left to right, for count elements of dtype. The bits depend on
/// the inputs alone: not on addresses, on count or on how a chunk was cut. out overlaps no input; all pointers are
/// aligned to their element.
///  - sum and product of integers wrap around;
///  - average is the sum divided by the number of inputs: one rounded division, for integers toward zero;
///  - min and max of floats give NaN if any input is NaN; of -0 and +0 the later one is taken.
void reduce_chunk(ddl_dtype dtype, ddl_op op, std::span<const std::byte* const> inputs, std::byte* out,
                  std::size_t count);

/// values[e] /= ranks for count elements: what turns a sum over ranks inputs into the average.
void divide_chunk(ddl_dtype dtype, std::byte* values, std::size_t count, int ranks);

}  // namespace ddl::runtime
