// GPUs in the recorded output of rocm-smi, amd-smi and nvidia-smi.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

struct RecordedGpu {
  std::string bus_id;       ///< "" if the text does not have it
  std::optional<int> numa;  ///< the operating system's number; nullopt: unknown, or more than one
  CpuSet cpus;              ///< near it; empty: unknown
  std::string from;         ///< the program that has printed it: "rocm-smi"
};

/// The lines of a text, one after the other, without the sequences that underline words on a terminal.
class RecordedGpus {
 public:
  /// Error: a list of CPUs in a row of nvidia-smi that is none.
  Status read(const std::string& line);
  /// By vendor, and by index as the vendor counts.
  std::map<std::pair<GpuVendor, int>, RecordedGpu> take() &&;

 private:
  /// What nvidia-smi's head line says of the columns behind its matrix.
  struct NvidiaHead {
    std::size_t devices = 0;  ///< columns of the matrix: GPUs and NICs
    std::size_t columns = 0;  ///< behind it
    bool has_numa = false;
    bool has_tabs = false;  ///< between the columns, so that an empty one can be seen
  };

  static std::optional<NvidiaHead> nvidia_head(const std::string& line);
  Status read_nvidia_row(const std::string& line);
  void read_rocm_smi(const std::string& line);
  void read_amd_smi(const std::string& line);

  std::map<std::pair<GpuVendor, int>, RecordedGpu> gpus_;
  std::optional<NvidiaHead> nvidia_;
  // Of `amd-smi static`: the GPU whose lines follow, and whether CPUs in them are those of its NUMA node.
  std::optional<int> amd_gpu_;
  bool is_near_amd_gpu_ = false;
  std::vector<std::string> amd_bus_ids_;  ///< rows of `amd-smi topology`, or GPUs of `lspci -D`, by index
};

/// A number below 4096, the most that any machine has of something; -1 stands for "unknown". nullopt: another text.
std::optional<int> small_number(std::string_view text);

}  // namespace ddl::affinity
