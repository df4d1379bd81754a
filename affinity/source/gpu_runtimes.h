// The GPUs that a program with this process's environment sees, in the order in which the vendor's runtime counts them:
// what variables such as CUDA_VISIBLE_DEVICES leave of those that vendor_gpus.h lists.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "affinity/source/vendor_gpus.h"

namespace ddl::affinity {

/// By CUDA's driver and by HIP's runtime, the first of the libraries that can be loaded. No context is made on a GPU.
/// As with the functions of vendor_gpus.h, for a process of its own. None is visible: an empty list. Errors: kNotFound,
/// no such library can be loaded; kUnavailable, the name of the function that fails, with its error.
Result<std::vector<VendorGpu>> ask_cuda(const std::string& library = "libcuda.so.1");
Result<std::vector<VendorGpu>> ask_hip(std::initializer_list<const char*> libraries = {
                                           "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                           "libamdhip64.so"});

}  // namespace ddl::affinity
