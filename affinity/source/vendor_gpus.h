// What the vendors' own libraries know of GPUs: in which order they count them, and by which names.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

struct VendorGpu {
  int index = 0;       ///< among what a rank can compute on
  std::string bus_id;  ///< "0000:c1:00.0"
  std::string uuid;    ///< "GPU-..."; "" if the library does not say
  std::string model;
  bool by_uuid =
      false;  ///< programs must name it so: an instance of a divided GPU (MIG), or a GPU beside one
  bool operator==(const VendorGpu&) const = default;
};

/// By index. Each function loads the library, queries it, and leaves it loaded: it may start threads, hang or crash,
/// so call it in a child (child_query.h). Errors name the library and contain its message.
Result<std::vector<VendorGpu>> ask_nvml(const std::string& library = "libnvidia-ml.so.1");
Result<std::vector<VendorGpu>> ask_rocm_smi(const std::string& library = "librocm_smi64.so");

/// The GPUs that a program with this process's environment sees, in the order in which the vendor's runtime counts them:
/// what variables such as CUDA_VISIBLE_DEVICES leave. By CUDA's driver, and by HIP's runtime, the first of the libraries
/// that can be loaded. Makes no context on a GPU; for a process of its own, as above. None is visible: an empty list.
/// Errors: kNotFound, no such library can be loaded; kUnavailable, the name of the function that fails, with its error.
Result<std::vector<VendorGpu>> ask_cuda(const std::string& library = "libcuda.so.1");
Result<std::vector<VendorGpu>> ask_hip(std::initializer_list<const char*> libraries = {
                                           "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                           "libamdhip64.so"});

/// "00000000:C1:00.0", as NVML writes it, to "0000:c1:00.0".
std::string canonical_bus_id(const std::string& text);

/// Gives the topology's GPUs of a vendor the library's numbers, UUIDs and models, by bus id, and sorts them by
/// number. A GPU that the library does not count cannot be used, and is removed. Pure.
void number_gpus(Topology& topology, GpuVendor vendor, const std::vector<VendorGpu>& known);

/// Queries the library of each vendor that has a GPU in the topology. If it does not answer, GPUs keep their order by
/// bus id, and a warning reports it. For a process with one thread.
void ask_vendors(Topology& topology);

}  // namespace ddl::affinity
