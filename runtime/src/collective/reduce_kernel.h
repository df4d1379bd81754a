// The reduction of one chunk: the innermost loop of an allreduce.
#pragma once

#include <cstddef>
#include <span>

#include "ddl/ddl.h"
#include "runtime/src/common/call.h"

namespace ddl::runtime {

/// How a call combines the elements of all ranks. op applies to dtype.
struct Reduction {
  ddl_dtype dtype = DDL_INT32;
  ddl_op op = DDL_SUM;
  double prescale = 1.0;   ///< every input is multiplied by it first; finite, not 0, 1 for bool
  double postscale = 1.0;  ///< the result is multiplied by it last; the same
};

/// out[e] = inputs[0][e] op inputs[1][e] op ..., from left to right, for count elements of dtype. The bits depend on
/// the inputs alone: not on addresses, on count, on how a chunk was cut, or on the instruction set. out may be one of
/// the first two inputs and overlaps no other; all pointers are aligned to their element.
///  - sum and product of integers wrap around; 16-bit floats are combined as float and rounded once;
///  - average is the sum divided by the number of inputs: one rounded division, for integers toward zero; sums of
///    integers below 64 bits do not wrap on the way;
///  - min and max of floats give NaN if any input is NaN; of -0 and +0 the later one is taken;
///  - a NaN in the result is the type's quiet NaN without a sign, whatever NaN was in the inputs;
///  - logical operations and bool give 0 or 1;
///  - scales multiply in the type that elements are combined in, and are rounded to it first; integers are multiplied
///    as double, truncated toward zero, and saturated to their type's range. So for an average of integers every
///    element is scaled and truncated in its own type before it is added in 64 bits, and the average, an element
///    again, is scaled and truncated once more. Nothing is multiplied by a scale of 1.
void reduce_chunk(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* out,
                  std::size_t count);

/// The first half of reduce_chunk(), for some of the ranks: out is of partial_dtype(dtype, op), inputs are scaled,
/// sums of averages are not divided. Partial results are combined by reduce_chunk() with merge_of().
void reduce_partials(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* out,
                     std::size_t count);

/// The partial results of no rank: count times the value, of partial_dtype(dtype, op), that changes no other when they
/// are combined. op applies to dtype.
void fill_identity(ddl_dtype dtype, ddl_op op, std::byte* out, std::size_t count);

/// The partial results of the ranks of a host: those of no rank if there are no inputs.
inline void reduce_host(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* out,
                        std::size_t count) {
  if (inputs.empty()) return fill_identity(reduction.dtype, reduction.op, out, count);
  reduce_partials(reduction, inputs, out, count);
}

/// How partial results are combined.
inline Reduction merge_of(const Reduction& reduction) {
  return {partial_dtype(reduction.dtype, reduction.op),
          reduction.op == DDL_AVERAGE ? ddl_op{DDL_SUM} : reduction.op};
}

/// The second half: the partial result of all ranks, whose number is ranks, is divided and scaled. out may be
/// partials if the types are the same.
void finish_chunk(const Reduction& reduction, const std::byte* partials, std::byte* out, std::size_t count,
                  int ranks);

}  // namespace ddl::runtime
