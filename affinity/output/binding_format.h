// Prints a binding plan: as a table or an explanation for a person, as JSON for a script, or in the form that srun,
// taskset, hwloc-bind, OpenMP or Open MPI's rankfile takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "affinity/plan/binding_plan.h"
#include "affinity/topology.h"

namespace ddl::affinity {

// The forms in which a plan is printed.

enum class BindingFormat : std::uint8_t {
  kTable,
  kExplanation,
  kMapCpu,
  kMaskCpu,
  kSrun,
  kTaskset,
  kHwloc,
  kOmpPlaces,
  kRankfile,
  kJson,
  kSvg,
};

/// "map_cpu" and so on; nothing for another word. --explain-bind is the only way to kExplanation.
std::optional<BindingFormat> parse_binding_format(std::string_view text);

/// The plan, which is of this topology, as whole lines.
std::string format_binding(const Topology& topology, const BindingPlan& plan, BindingFormat format);

// A plan in the forms that other programs take.

/// "map_cpu:49,57,17": each rank's first CPU. What goes behind srun's --cpu-bind=.
std::string as_map_cpu(const BindingPlan& plan);
/// "mask_cpu:0xfe000000000000,...": each rank's CPUs.
std::string as_mask_cpu(const BindingPlan& plan);
/// "--cpu-bind=mask_cpu:... --cpus-per-task=7": the options of an srun that starts these ranks.
std::string as_srun_options(const BindingPlan& plan);
/// "taskset -c 49-55": a line for each rank.
std::string as_taskset(const BindingPlan& plan);
/// "hwloc-bind --cpubind 0xfe --membind nodeset:0x8": a line for each rank.
std::string as_hwloc_bind(const BindingPlan& plan);
/// "{49},{50},{51}": a line for each rank, for OMP_PLACES.
std::string as_omp_places(const BindingPlan& plan);
/// "rank 0=node0 slot=49-55": Open MPI's, and that of --rankfile, with cores by hwloc's logical index; host stands for
/// every node, whose first rank is first_rank. A rank gets all hardware threads of its cores there.
std::string as_rankfile(const Topology& topology, const BindingPlan& plan, const std::string& host,
                        int first_rank);

}  // namespace ddl::affinity
