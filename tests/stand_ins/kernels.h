// libddl's kernels on GPUs that exist in this process only: the same text, compiled as C++ (device/gpu_*.inc). What a
// real compiler makes of it is not tested here.
#pragma once

#include <functional>
#include <string>

#include "stand_ins/gpu.h"

namespace ddl::stand_ins {

/// A module with this text, which lives as long as the process.
const std::string* keep_module(const char* text);
/// Null: there is no kernel of this name.
void* kernel_named(const char* name);

/// What a stream does when the kernel is launched. The arguments are copied now.
std::function<void()> kernel_call(void* kernel, unsigned blocks, unsigned threads, void** arguments,
                                  const GpuMemory& memory);

}  // namespace ddl::stand_ins
