// The hardware of one node as far as binding needs it: cores with their caches and NUMA nodes, GPUs, network
// adapters, and the cores that are reserved for the operating system. These are pure values; affinity/source/ fills
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_set.h"
#include "base/error.h"

namespace ddl::affinity {

// A node as far as it matters for the placement of ranks: cores with their caches and memory, GPUs and network
// adapters.
//
// Pure values, wherever they come from (affinity/source/). Indices in here are positions in this struct's own
// vectors; os_index is what the operating system calls a thing.

/// One core, with those of its hardware threads that the job may use.
struct Core {
  CpuSet cpus;      ///< its hardware threads; never empty
  int package = 0;  ///< of packages
  int numa = 0;     ///< of numa_nodes: the nearest with memory of its own
  int l3 = -1;      ///< of l3s; -1: it is not known which cores share one
  int kind = 0;     ///< of core_kinds, if the node has several
  bool operator==(const Core&) const = default;
};

/// A core as hwloc numbers cores (its logical index): package by package, whatever the operating system calls the CPUs.
struct NumberedCore {
  CpuSet cpus;      ///< its hardware threads, also those that the job may not use
  int package = 0;  ///< of packages
  bool operator==(const NumberedCore&) const = default;
};

/// A set of cores that share something.
struct CpuDomain {
  int os_index = 0;
  CpuSet cpus;  ///< those that the job may use
  /// All that the machine has there, so that it shows what a cgroup or a reservation has taken away.
  CpuSet complete;
  bool operator==(const CpuDomain&) const = default;
};

/// Cores that are as fast as each other, on a node whose cores are not: performance and efficiency cores, or Arm's big
/// and LITTLE ones.
struct CoreKind {
  std::string name;  ///< "P" and "E" if there are two kinds, else "1", "2" and so on, the fastest first
  CpuSet cpus;       ///< all that the machine has of it
  bool operator==(const CoreKind&) const = default;
};

struct NumaNode {
  int os_index = 0;
  CpuSet cpus;  ///< those that the job may use; empty for memory without CPUs (HBM, CXL, that of a GPU)
  CpuSet complete;
  std::uint64_t memory_bytes = 0;  ///< 0: unknown
  bool operator==(const NumaNode&) const = default;
};

enum class GpuVendor : std::uint8_t { kNvidia, kAmd, kIntel };

constexpr const char* name_of(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::kNvidia: return "nvidia";
    case GpuVendor::kAmd: return "amd";
    case GpuVendor::kIntel: return "intel";
  }
  return "unknown";
}

/// Something that a rank computes on. Several may share a bus id: partitions of one GPU.
struct Gpu {
  int index = 0;  ///< as the vendor's library counts, from 0; by bus id if that is not known
  GpuVendor vendor = GpuVendor::kNvidia;
  std::string bus_id;  ///< "0000:c1:00.0"; "" if unknown
  std::string uuid;    ///< "GPU-..."; "" if unknown
  std::string model;   ///< "MI250X"; "" if unknown
  /// Its name in the variable of visible devices: the word of the variable that the user has set, or the UUID of a
  /// device without a number there; "": by index.
  std::string visible_as;
  CpuSet local_cpus;  ///< allowed CPUs nearest to it; empty: unknown, or none of them is allowed
  CpuSet complete_local_cpus;
  int numa = -1;              ///< of numa_nodes; -1: unknown
  std::string pci_switch;     ///< bus id of the nearest PCI switch above, which NICs may share; "" if unknown
  std::string locality_from;  ///< where local_cpus come from, for a person: "PCI locality", "rocm-smi"
  bool operator==(const Gpu&) const = default;
};

struct Nic {
  std::string name;        ///< "hsn0", "mlx5_0"; "" if it has none here
  double bus_speed = 0;    ///< of its PCI link, in GB/s; 0: unknown
  bool is_fabric = false;  ///< InfiniBand or another fabric by its PCI class, and not Ethernet
  std::string bus_id;
  CpuSet local_cpus;
  int numa = -1;
  std::string pci_switch;
  bool operator==(const Nic&) const = default;
};

struct Topology {
  std::string source;       ///< for a person: "this machine", "node.xml"
  std::string board;        ///< as the firmware names it: "HPE CRAY EX235A"; "" if unknown
  CpuSet allowed;           ///< all CPUs that the job may use
  CpuSet complete;          ///< all that the machine has
  std::vector<Core> cores;  ///< those with an allowed CPU, by their first CPU
  /// By hwloc's logical index. As in hwloc, without those that a cgroup withholds. Empty: unknown.
  std::vector<NumberedCore> numbered_cores;
  std::vector<CpuDomain> packages;
  std::vector<NumaNode> numa_nodes;
  std::vector<CpuDomain> l3s;
  std::vector<CoreKind>
      core_kinds;         ///< the fastest first; empty if all cores are of one kind, or it is unknown
  std::vector<Gpu> gpus;  ///< by index
  std::vector<Nic> nics;  ///< by name
  std::vector<std::string> warnings;  ///< what was guessed, or could not be found out
  bool operator==(const Topology&) const = default;
};

/// Whether all positions in it are valid in its own vectors, its NUMA nodes have numbers that Linux could give them,
/// and it has cores to run on: plan_binding() relies on that. For a topology that another process has sent.
bool is_consistent(const Topology& topology);

/// Topology::numbered_cores, or, where these are unknown, its cores by package and first CPU.
std::vector<NumberedCore> numbered_cores(const Topology& topology);

/// "the node has GPUs of nvidia and amd", if it has those of several vendors; else "".
std::string mixed_vendors(const Topology& topology);

/// Sorts cores by their first CPU.
void sort_by_first_cpu(std::vector<Core>& cores);

// Cores that are left to the system.

struct ReservedCores {
  bool first_core_per_l3 = false;
  CpuSet cpus;  ///< these and the other hardware threads of their cores
  bool operator==(const ReservedCores&) const = default;
};

/// "first-core-per-l3", or CPUs such as "0,8,16-17". Error kInvalidArgument quotes text that is neither.
Result<ReservedCores> parse_reserved(std::string_view text);

/// Counted on the whole machine: if a cgroup withholds the first core of an L3, the next core is not reserved
/// instead.
CpuSet reserved_cpus(const ReservedCores& reserved, const std::vector<CpuDomain>& l3s);

}  // namespace ddl::affinity
