// How ranks are to be bound, as the user says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "affinity/plan/reserved_cores.h"

namespace ddl::affinity {

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

struct BindingPolicy {
  BindTo bind_to = BindTo::kAuto;
  RankOrder rank_order = RankOrder::kGpu;
  MemoryBinding memory = MemoryBinding::kLocal;
  /// Cores of each rank; 0: as many as there are for it.
  int cores_per_rank = 0;
  /// 0: as many ranks as there are GPUs have one each; more ranks share them evenly.
  int gpus_per_rank = 0;
  /// 0: as many as it takes.
  int ranks_per_gpu = 0;
  /// Also the other hardware threads of a rank's cores; otherwise one of each.
  bool smt = false;
  ReservedCores reserved;
  /// More ranks than cores: they share them instead of being refused.
  bool oversubscribe = false;
  bool operator==(const BindingPolicy&) const = default;
};

}  // namespace ddl::affinity
