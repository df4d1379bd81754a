// Computes which CPUs, memory, GPUs and network adapters every rank of a node gets. plan_binding() turns a topology,
// a policy (what the user asked for) and a number of ranks into a plan; it is a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/topology.h"
#include "base/cpu_set.h"
#include "base/error.h"

namespace ddl::affinity {

// How ranks are to be bound, as the user specifies it.

enum class BindTo : std::uint8_t { kAuto, kGpu, kNuma, kL3, kSocket, kCore, kPu, kNone };

/// "gpu" and so on; nothing for another word.
std::optional<BindTo> parse_bind_to(std::string_view text);
const char* name_of(BindTo bind_to);

enum class RankOrder : std::uint8_t {
  kGpu,  ///< local rank r has the r-th GPU, wherever that is
  kCpu,  ///< local ranks ascend by CPU, and each has the GPU that is near
};

enum class MemoryBinding : std::uint8_t {
  kLocal,  ///< memory of the NUMA nodes that the rank's CPUs belong to
  kNone,
};

/// Which objects of its node each local rank takes, as mpirun's --map-by has it.
struct ObjectMapping {
  /// kSocket, kNuma, kL3, kCore or kPu; kAuto: ranks are not mapped to objects.
  BindTo object = BindTo::kAuto;
  /// So many neighbours share an object. 0: each object takes a rank in turn, and again from the first.
  int ranks_per_object = 0;
  bool operator==(const ObjectMapping&) const = default;
};

/// As mpirun writes it: "ppr:2:numa", "l3cache". Not for kAuto.
std::string text_of(const ObjectMapping& mapping);

struct BindingPolicy {
  BindTo bind_to = BindTo::kAuto;
  /// With an object: ranks are bound within theirs, and have no GPUs of their own; bind_to is narrower.
  ObjectMapping mapping;
  RankOrder rank_order = RankOrder::kGpu;
  MemoryBinding memory = MemoryBinding::kLocal;
  /// Cores of each rank; 0: as many as there are for it.
  int cores_per_rank = 0;
  /// 0: as many ranks as there are GPUs have one each; more ranks share them evenly.
  int gpus_per_rank = 0;
  /// 0: as many as it takes.
  int ranks_per_gpu = 0;
  /// Whether ranks get all hardware threads of their cores; otherwise one of each core.
  bool smt = false;
  ReservedCores reserved;
  /// More ranks than cores: they share them instead of being refused.
  bool oversubscribe = false;
  bool operator==(const BindingPolicy&) const = default;
};

// Which CPUs, memory, GPUs and network adapter every rank of a node has, and why.

/// A GPU that a rank sees.
struct AssignedGpu {
  int index = 0;
  GpuVendor vendor = GpuVendor::kNvidia;
  std::string bus_id;
  std::string uuid;
  std::string visible_as;  ///< as Gpu::visible_as
  bool operator==(const AssignedGpu&) const = default;
};

struct RankBinding {
  int local_rank = 0;
  CpuSet cpus;                  ///< never empty, and none that the job may not use
  int first_cpu = 0;            ///< the lowest of them
  std::vector<int> numa_nodes;  ///< that its CPUs belong to, by the operating system's numbers
  std::vector<AssignedGpu> gpus;
  std::vector<std::string>
      nics;         ///< each near to one of its GPUs, in their order; empty if none is known to be
  int threads = 1;  ///< for OMP_NUM_THREADS: its cores
  int package = 0;  ///< of Topology::packages
  int l3 = -1;      ///< of Topology::l3s, if all its CPUs share one
  std::string why;  ///< one sentence
};

/// Nothing is bound if ranks is empty: that is BindTo::kNone.
struct BindingPlan {
  std::vector<RankBinding> ranks;  ///< by local rank
  bool binds_memory = false;
  std::vector<std::string> warnings;
};

// The cores that ranks may have: what the job may use, less what is left to the system.

struct UsableCores {
  std::vector<int> cores;  ///< positions in Topology::cores, by first CPU
  CpuSet reserved;         ///< CPUs that were allowed and are left to the system
  /// The first core of each share must still be left out, because the L3s are unknown.
  bool reserves_first_of_share = false;
};

/// If a cgroup has already taken away a core that is to be reserved, no other core is reserved for it.
UsableCores usable_cores(const Topology& topology, const BindingPolicy& policy);

/// How many ranks policy.mapping, which has ranks_per_object, lets the node take: objects without a usable core take
/// none. Error kUnavailable: the node does not say which cores share such an object.
Result<int> max_mapped_ranks(const Topology& topology, const BindingPolicy& policy);

// The GPUs that a variable such as CUDA_VISIBLE_DEVICES makes visible.

/// Keeps the GPUs of the topology that the value names, in its order, each with its visible_as: by index, by "GPU-"
/// and the beginning of a UUID, or by "MIG-...", which is a GPU of unknown place unless the topology has that UUID.
/// As the vendors' libraries do, it ignores all that follows the first word that names no GPU ("-1"). Only GPUs of
/// the vendor are kept; the others are removed.
void keep_visible(Topology& topology, GpuVendor vendor, std::string_view value);

// topology + policy + number of ranks -> plan. A pure function.

/// Where local_ranks ranks of a node run. No rank gets a CPU that the job may not use, an empty set, or a CPU of
/// another one unless the policy allows that. Error kInvalidArgument names the resource that is too small, or the
/// option that asks for one that the node does not have.
Result<BindingPlan> plan_binding(const Topology& topology, const BindingPolicy& policy, int local_ranks);

}  // namespace ddl::affinity
