// Where a topology comes from: hwloc for this machine, an hwloc XML file or hwloc's synthetic form
// (hwloc_source.cpp), or what tools such as lscpu, rocm-smi and nvidia-smi have printed (recorded_text.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

// Where a topology comes from.

class TopologySource {
 public:
  virtual ~TopologySource() = default;
  /// Reads it anew. Errors name the file, or the operation that failed on the machine.
  virtual Result<Topology> load() const = 0;
};

enum class Devices : std::uint8_t {
  kAll,
  /// Only if there is a GPU: without one nothing depends on devices, and reading those of a virtual machine takes
  /// milliseconds.
  kBesideGpus,
};

/// This machine, restricted to what this process may use (cgroup, Slurm's step, taskset). Only for a process that has
/// one thread while it loads.
std::unique_ptr<TopologySource> this_machine(Devices devices);
/// A file that `lstopo` or `hwloc-ls` of hwloc 2 has written.
std::unique_ptr<TopologySource> hwloc_xml(std::string path);
/// hwloc's own short form: "pack:1 numa:4 l3:2 core:8 pu:2".
std::unique_ptr<TopologySource> hwloc_synthetic(std::string text);

/// The hwloc library that this process is linked with.
struct HwlocLibrary {
  std::string version;  ///< of its interface: "hwloc 2.9.0"
  std::string path;     ///< this program's own if the library is a part of it
};
HwlocLibrary linked_hwloc();

/// What --topology means: the synthetic form if the text contains a "kind:count" and there is no such file, else a
/// file.
std::unique_ptr<TopologySource> topology_named(const std::string& text);

// A topology from what tools print and people paste: `lscpu`, with `rocm-smi --showtoponuma`, `amd-smi static --numa` or
// `nvidia-smi topo -m`; or the last one alone.

/// Reads the lines that it knows wherever they stand, between prompts and anything else:
///   NUMA node0 CPU(s):  0-15,64-79            (lscpu; also its Thread(s) per core, Architecture, On-line CPU(s) list)
///   GPU[0] : (Topology) Numa Node: 3          (rocm-smi; also "GPU 0  :", tabs, and -1 for unknown)
///   GPU: 0 ... NODE: 3                        (amd-smi static --numa; bus ids of amd-smi topology or lspci -D)
///   GPU0  X  NV12 ... 48-63,176-191  3        (nvidia-smi topo -m, under its own head line)
/// Sequences for a terminal are skipped. Without Thread(s) per core, two or four ranges of the same length are taken for
/// the hardware threads of a NUMA node's cores, and else each CPU for a core, with a warning. Packages and L3s are
/// unknown. Error kInvalidArgument names source and what is missing in it, also if lscpu has printed another language.
Result<Topology> topology_of_text(std::string_view text, const std::string& source);

}  // namespace ddl::affinity
