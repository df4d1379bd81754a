// Nodes made of numbers, for tests of what is planned on them.
#pragma once

#include <string>
#include <vector>

#include "affinity/topology.h"

namespace ddl::affinity::test {

/// A regular node: packages of NUMA nodes of L3s of cores; hardware thread t of core c is CPU c + t * cores.
struct Model {
  int packages = 1;
  int numa_per_package = 1;
  int l3s_per_numa = 1;
  int cores_per_l3 = 4;
  int threads = 1;
  bool tells_l3s = true;

  int cores() const { return packages * numa_per_package * l3s_per_numa * cores_per_l3; }
  /// allowed: the CPUs that the job may use; empty: all.
  Topology topology(const CpuSet& allowed = {}) const;
  /// All hardware threads of cores first to first + count - 1.
  CpuSet threads_of(int first, int count) const;
  CpuSet numa_cpus(int numa) const;
  CpuSet l3_cpus(int l3) const;
};

/// GPUs, in index order, near to the NUMA nodes of these numbers.
void add_gpus_on_numa(Topology& topology, const std::vector<int>& numa);
/// The same of L3s.
void add_gpus_on_l3(Topology& topology, const std::vector<int>& l3s);

/// LUMI-G's and Frontier's node: 64 cores with two threads, 4 NUMA nodes, 8 L3s, 8 GCDs.
Model ex235a();

}  // namespace ddl::affinity::test
