// The vendors' libraries: how their functions are found at run time, and what makes a runtime of each.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// A function that is looked for, and where its address goes.
struct VendorSymbol {
  const char* name;
  void** place;
  bool is_optional = false;
};

template <class Function>
VendorSymbol needed(const char* name, Function*& place) {
  return {name, reinterpret_cast<void**>(&place), false};
}
/// The place stays null if the library is older than the function.
template <class Function>
VendorSymbol optional(const char* name, Function*& place) {
  return {name, reinterpret_cast<void**>(&place), true};
}

/// kUnavailable names a function that the library lacks.
inline Status load_symbols(void* library, std::span<const VendorSymbol> symbols) {
  for (const VendorSymbol& symbol : symbols) {
    *symbol.place = ::dlsym(library, symbol.name);
    if (*symbol.place == nullptr && !symbol.is_optional)
      return fail(ErrorCode::kUnavailable, std::string("it has no ") + symbol.name);
  }
  return {};
}

/// NVIDIA's GPUs, by the driver's library (libcuda.so.1). Its primary context of a GPU is the one that the CUDA runtime,
/// PyTorch and NCCL use. kUnavailable names a function that the library lacks.
Result<std::unique_ptr<DeviceRuntime>> make_cuda(void* library);
/// AMD's GPUs, by the HIP runtime (libamdhip64.so). The same.
Result<std::unique_ptr<DeviceRuntime>> make_hip(void* library);

}  // namespace ddl::runtime
