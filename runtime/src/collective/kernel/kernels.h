// The table of functions that the files of this folder each fill for one instruction set.
//
// Those files are compiled for processors newer than the one that may load the library. An inline function of a
// header that two files share is emitted by both, and the linker keeps either: a function of the standard library
// compiled here could end up in code that every processor runs. So this folder includes the headers of the C
// language, those of the compiler and its own, and its definitions are in anonymous namespaces (a structure test
// checks the includes).
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddl/ddl.h"

namespace ddl::runtime {

/// The elements of all ranks: those of rank i begin at of_rank[i], and first is the index of the first one to use.
struct Inputs {
  const std::byte* const* of_rank;
  std::size_t ranks;
  std::size_t first;
};

/// The functions of an instruction set, by index_of() a ddl_dtype and by ddl_op; null if an operation does not apply.
/// Three types are involved: an element's own; its partial type (partial_dtype() of common/call.h), in which
/// operations are done; and its scaled type, which is float for narrower floats and otherwise its own. Pointers are
/// aligned to their type. An output may be the same array as one of the first two inputs if its elements are of the
/// same size, and overlaps nothing else.
struct Kernels {
  static constexpr int kTypes = 17;
  static constexpr int kOps = 11;

  /// out = the inputs combined, as elements; not for averages.
  void (*reduce[kTypes][kOps])(const Inputs& inputs, void* out, std::size_t count);
  /// The same as partials. For averages: their sums.
  void (*partials[kTypes][kOps])(const Inputs& inputs, void* out, std::size_t count);
  /// partials = partials op input.
  void (*add_input[kTypes][kOps])(const void* input, void* partials, std::size_t count);
  /// out = elements * factor, of the scaled type.
  void (*scale[kTypes])(const void* elements, void* out, std::size_t count, double factor);
  /// out = partials * factor, as elements; not for averages of integers.
  void (*finish[kTypes])(const void* partials, void* out, std::size_t count, double factor);
  /// out = partials of an average / ranks * factor, as elements.
  void (*average[kTypes])(const void* partials, void* out, std::size_t count, std::int64_t ranks,
                          double factor);
  /// Copies bytes that do not overlap, with streaming stores: whole cache lines go past the caches of this core. No
  /// release store orders them (shm/flag_protocol.h).
  void (*stream)(const void* from, void* to, std::size_t bytes);
};

namespace {

/// The index of a type in the tables; -1 for a type that does not exist. Internal linkage: see above.
constexpr int index_of(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_INT8: return 0;
    case DDL_INT16: return 1;
    case DDL_INT32: return 2;
    case DDL_INT64: return 3;
    case DDL_UINT8: return 4;
    case DDL_UINT16: return 5;
    case DDL_UINT32: return 6;
    case DDL_UINT64: return 7;
    case DDL_FLOAT16: return 8;
    case DDL_BFLOAT16: return 9;
    case DDL_FLOAT32: return 10;
    case DDL_FLOAT64: return 11;
    case DDL_BOOL: return 12;
    case DDL_FLOAT8_E4M3FN: return 13;
    case DDL_FLOAT8_E5M2: return 14;
    case DDL_FLOAT8_E4M3FNUZ: return 15;
    case DDL_FLOAT8_E5M2FNUZ: return 16;
    default: return -1;
  }
}

}  // namespace

/// Constants: no code of these files runs before the processor's features have been checked.
extern const Kernels kBaselineKernels;
extern const Kernels kAvx2Kernels;    ///< x86-64 only; needs F16C too, which no processor with AVX2 lacks
extern const Kernels kAvx512Kernels;  ///< x86-64 only; F, BW, DQ, VL
extern const Kernels kNeonKernels;    ///< aarch64 only, and every processor of it has them

}  // namespace ddl::runtime
