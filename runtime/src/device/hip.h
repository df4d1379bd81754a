// AMD's GPUs, by the HIP runtime.
#pragma once

#include <memory>

#include "base/error.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// From the handle of libamdhip64.so. kUnavailable names a function that it lacks.
Result<std::unique_ptr<DeviceRuntime>> make_hip(void* library);

}  // namespace ddl::runtime
