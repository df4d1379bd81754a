// The features of this libddl and of this process, and the functions of version 0.1 that reported them one by one:
// ddl.h has inline functions instead, and programs that were linked with version 0.1 find the functions here.
#include <atomic>
#include <cstring>
#include <string>

#include "runtime/src/api/c_abi.h"
#include "runtime/src/backend/nccl/nccl_library.h"
#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/device/device_runtimes.h"

namespace {

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

// Of the process's context: the name of its MPI, null if it has none, and whether this MPI allows several threads.
std::atomic<const char*> process_mpi{nullptr};
std::atomic<bool> process_mpi_takes_threads{false};

bool is_mpi_enabled() { return process_mpi.load() != nullptr; }

bool has_vendor(const std::string_view feature) {
  for (const DeviceVendor& vendor : device_vendors()) {
    if (vendor.feature == feature) return load_runtime(vendor).has_value();
  }
  return false;
}

bool has_nccl() {
  return NcclLibrary::load("libnccl.so.2").has_value() || NcclLibrary::load("librccl.so.1").has_value();
}

struct Feature {
  const char* name;
  bool (*is_there)();
};
constexpr Feature kFeatures[] = {
    {"mpi", [] { return true; }},  // the module for the ABI of MPI 5
    {"nccl", has_nccl},
    {"cuda", [] { return has_vendor("cuda"); }},
    {"rocm", [] { return has_vendor("rocm"); }},
    {"mpi-enabled", is_mpi_enabled},
    {"mpi-threads", [] { return is_mpi_enabled() && process_mpi_takes_threads.load(); }},
};

}  // namespace

void ddl::runtime::note_process_mpi(const MpiWorld* mpi) {
  if (mpi == nullptr) {
    process_mpi = nullptr;
    return;
  }
  // A process has one MPI, and its name stays.
  static const std::string kLibrary = mpi->library();
  process_mpi_takes_threads = mpi->takes_threads();
  process_mpi = kLibrary.c_str();
}

extern "C" {

int32_t ddl_has_feature(const char* name) {
  for (const Feature& feature : kFeatures) {
    if (name != nullptr && std::strcmp(name, feature.name) == 0) return feature.is_there() ? 1 : 0;
  }
  return 0;
}

const char* ddl_mpi_library(void) {
  const char* const library = process_mpi.load();
  return library == nullptr ? "" : library;
}

DDL_API int32_t ddl_mpi_built(void) { return ddl_has_feature("mpi"); }
DDL_API int32_t ddl_nccl_built(void) { return ddl_has_feature("nccl"); }
DDL_API int32_t ddl_cuda_built(void) { return ddl_has_feature("cuda"); }
DDL_API int32_t ddl_rocm_built(void) { return ddl_has_feature("rocm"); }
DDL_API int32_t ddl_mpi_enabled(void) { return ddl_has_feature("mpi-enabled"); }
DDL_API int32_t ddl_mpi_threads_supported(void) { return ddl_has_feature("mpi-threads"); }
DDL_API const char* ddl_cpu_operations(const ddl_context* context) { return ddl_backend_name(context); }

}  // extern "C"
