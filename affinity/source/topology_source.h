// Where a topology comes from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "affinity/topology.h"
#include "base/error.h"

namespace ddl::affinity {

class TopologySource {
 public:
  virtual ~TopologySource() = default;
  /// Reads it anew. Errors name the file, or what the machine refused.
  virtual Result<Topology> load() const = 0;
};

enum class Devices : std::uint8_t {
  kAll,
  /// Only where there is a GPU: without one nothing depends on them, and asking a virtual machine for its devices takes
  /// milliseconds.
  kBesideGpus,
};

/// This machine, restricted to what this process may use (cgroup, Slurm's step, taskset). Only for a process that has one
/// thread while it loads.
std::unique_ptr<TopologySource> this_machine(Devices devices);
/// A file that `lstopo` or `hwloc-ls` of hwloc 2 has written.
std::unique_ptr<TopologySource> hwloc_xml(std::string path);
/// hwloc's own short form: "pack:1 numa:4 l3:2 core:8 pu:2".
std::unique_ptr<TopologySource> hwloc_synthetic(std::string text);

/// "hwloc 2.9.0", of the library that is loaded.
std::string hwloc_version();

/// What --topology means: the synthetic form where the text has its "kind:count" and there is no such file, else a file.
std::unique_ptr<TopologySource> topology_named(const std::string& text);

}  // namespace ddl::affinity
