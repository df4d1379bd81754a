// NVIDIA's GPUs, by the driver's library. Its primary context of a GPU is the one that the CUDA runtime, PyTorch and
// NCCL use.
#pragma once

#include <memory>

#include "base/error.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// From the handle of libcuda.so.1. kUnavailable names a function that it lacks.
Result<std::unique_ptr<DeviceRuntime>> make_cuda(void* library);

}  // namespace ddl::runtime
