// The GPU runtimes of this process, and the search for the memory of a pointer.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// A vendor whose GPUs libddl can use, and the library with its runtime.
struct DeviceVendor {
  const char* name;     ///< "CUDA"
  const char* feature;  ///< the name for ddl_has_feature(): "cuda"
  /// The names of the library, in the order in which they are tried.
  std::vector<const char*> libraries;
  /// Makes the runtime from the library's handle; an error names what the library lacks.
  Result<std::unique_ptr<DeviceRuntime>> (*make)(void* library);
};

/// In the order in which they are asked.
const std::vector<DeviceVendor>& device_vendors();

/// The vendor's runtime, which lives as long as the process. kUnavailable: it cannot be loaded, and why. Does not
/// initialise GPUs.
Result<DeviceRuntime*> load_runtime(const DeviceVendor& vendor);

/// An address in memory of a GPU, and the runtime that knows it.
struct FoundMemory {
  DeviceRuntime* runtime = nullptr;
  DeviceMemory memory;
};

/// nullopt: the address is not in memory of a GPU. Asks only runtimes that this process has loaded, and notices when it
/// loads one. From any thread.
std::optional<FoundMemory> find_device_memory(const void* address);

/// False: neither buffer lies in memory of a GPU, as this process has loaded no runtime. Remembers pages with memory of
/// the CPU until the kernel's clock ticks: no runtime is loaded and gives memory in their place so quickly. A pointer may
/// be null. From any thread.
bool may_be_on_gpu(const void* first, const void* second);

}  // namespace ddl::runtime
