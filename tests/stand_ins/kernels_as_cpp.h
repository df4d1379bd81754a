// The text of libddl's kernels (device/gpu_*.inc) as C++, in an unnamed namespace of the file that includes this.
#pragma once

namespace {

/// What CUDA and HIP give a thread of a kernel.
struct KernelIndex {
  unsigned x;
};
// NOLINTNEXTLINE(misc-definitions-in-headers): of each file that includes this
thread_local KernelIndex gridDim, blockDim, blockIdx, threadIdx;

// NOLINTBEGIN: the text is for other compilers, too.
#define DDL_GPU_KERNELS(...) __VA_ARGS__
#define DDL_KERNEL extern "C" void
#define DDL_NO_UNROLL
#define __device__ static
#include "runtime/src/device/gpu_numbers.inc"
// In this order.
#include "runtime/src/device/gpu_combination.inc"
#include "runtime/src/device/gpu_copies.inc"
#include "runtime/src/device/gpu_scaling.inc"
#undef __device__
#undef DDL_NO_UNROLL
#undef DDL_KERNEL
#undef DDL_GPU_KERNELS
// NOLINTEND

}  // namespace
