// How much the GPUs of a node are used, by their vendors' management libraries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "affinity/source/vendor_gpus.h"
#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

/// A GPU at one moment. Numbers below 0: its library does not say, as of an instance of a divided GPU (MIG).
struct GpuReading {
  VendorGpu gpu;
  double busy_ratio = -1;          ///< of the last moments in which a kernel ran: 0 to 1
  std::int64_t memory_bytes = -1;  ///< in use, by all programs
  std::int64_t memory_limit_bytes = -1;
  double joules = -1;  ///< since some moment before the meter was opened
  bool operator==(const GpuReading&) const = default;
};

/// The library stays initialised, so that reading is cheap. It may start threads, hang or crash: for a process of its
/// own. One thread.
class GpuMeter {
 public:
  virtual ~GpuMeter() = default;
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  /// All GPUs that the library counted when the meter was opened.
  virtual std::vector<GpuReading> read() = 0;

 protected:
  GpuMeter() = default;
};

/// Errors: as ask_nvml() and ask_rocm_smi(). A library without a function for one of the numbers is no error.
Result<std::unique_ptr<GpuMeter>> open_nvml_meter(const std::string& library = "libnvidia-ml.so.1");
Result<std::unique_ptr<GpuMeter>> open_rocm_smi_meter(const std::string& library = "librocm_smi64.so");

}  // namespace ddl::affinity
