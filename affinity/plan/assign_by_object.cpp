// Assigns ranks to cores as mpirun's --map-by has it: to objects in turn, or so many to each.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "affinity/plan/rank_assignment.h"
#include "base/text.h"

namespace ddl::affinity {
namespace {

/// What ranks are mapped to.
struct Object {
  std::vector<int> cores;  ///< positions in Topology::cores, by first CPU
  CpuSet cpus;             ///< of a hardware thread: that one; else empty
  std::string name;
};

/// The place of each core of the topology in hwloc's order.
std::vector<int> places_of_cores(const Topology& topology) {
  std::map<int, int> place_of_cpu;
  int place = 0;
  for (const NumberedCore& core : numbered_cores(topology)) {
    for (const int cpu : core.cpus.cpus()) place_of_cpu[cpu] = place;
    ++place;
  }
  std::vector<int> places;
  for (const Core& core : topology.cores) {
    const auto found = place_of_cpu.find(core.cpus.first());
    places.push_back(found == place_of_cpu.end() ? place : found->second);
  }
  return places;
}

/// Those with a usable core, in hwloc's order.
Result<std::vector<Object>> objects_of(const Topology& topology, const UsableCores& usable, BindTo kind) {
  if (kind == BindTo::kL3 && topology.l3s.empty())
    return fail(ErrorCode::kUnavailable,
                "it is unknown which cores of this node share an L3; use numa or socket instead of l3cache");
  std::vector<Object> objects;
  if (kind == BindTo::kPu) {
    for (const Pu& pu : pus_of(topology, usable))
      objects.push_back({{pu.core}, CpuSet::of({pu.cpu}), fmt::format("CPU {}", pu.cpu)});
  } else {
    for (Domain& domain : domains_of(topology, usable, kind))
      objects.push_back({std::move(domain.cores), {}, std::move(domain.name)});
  }
  const std::vector<int> places = places_of_cores(topology);
  const auto first_place = [&](const Object& object) {
    int first = places[object.cores.front()];
    for (const int core : object.cores) first = std::min(first, places[core]);
    return first;
  };
  std::stable_sort(objects.begin(), objects.end(),
                   [&](const Object& a, const Object& b) { return first_place(a) < first_place(b); });
  return objects;
}

/// Each rank has the next cores_per_rank cores of the object.
Result<Assignment> in_sequence(const Object& object, int cores_per_rank, int ranks) {
  const std::int64_t wanted = std::int64_t{cores_per_rank} * ranks;
  if (wanted > std::ssize(object.cores))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} with {} each need {}, and {} has {} usable; ask for fewer cores for each "
                            "rank, or for fewer ranks",
                            counted(ranks, "rank"), counted(cores_per_rank, "core"), wanted, object.name,
                            object.cores.size()));
  Assignment assignment;
  for (int rank = 0; rank < ranks; ++rank)
    assignment.ranks.emplace_back().cores = take(object.cores, {rank * cores_per_rank, cores_per_rank});
  return assignment;
}

/// The ranks of one object.
Result<Assignment> share_object(const Topology& topology, const BindingPolicy& policy,
                                const UsableCores& usable, const Object& object, int ranks) {
  if (!object.cpus.is_empty()) {
    if (policy.cores_per_rank > 1)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("a hardware thread is no {} cores; map ranks to numa or socket instead",
                              policy.cores_per_rank));
    if (ranks > 1 && !policy.oversubscribe)
      return fail(ErrorCode::kInvalidArgument, fmt::format("{} for {}; --oversubscribe lets them share",
                                                           object.name, counted(ranks, "rank")));
    Assignment assignment;
    for (int rank = 0; rank < ranks; ++rank) {
      AssignedRank& own = assignment.ranks.emplace_back();
      own.cores = object.cores;
      own.cpus = object.cpus;
    }
    if (ranks > 1) assignment.warnings.push_back(fmt::format("{} share it", counted(ranks, "rank")));
    return assignment;
  }
  if (policy.cores_per_rank > 0) return in_sequence(object, policy.cores_per_rank, ranks);
  auto shared = assign_by_cpu(topology, policy, {object.cores, {}, usable.reserves_first_of_share}, ranks);
  if (!shared) return fail(std::move(shared.error()).during(object.name));
  return shared;
}

}  // namespace

Result<int> max_mapped_ranks(const Topology& topology, const BindingPolicy& policy) {
  DDL_ASSIGN(objects, objects_of(topology, usable_cores(topology, policy), policy.mapping.object));
  constexpr std::int64_t kMaxRanks = 1'000'000;
  return std::min<std::int64_t>(kMaxRanks, policy.mapping.ranks_per_object * std::ssize(objects));
}

Result<Assignment> assign_by_object(const Topology& topology, const BindingPolicy& policy,
                                    const UsableCores& usable, int local_ranks) {
  const ObjectMapping& mapping = policy.mapping;
  const auto objects = objects_of(topology, usable, mapping.object);
  if (!objects) return fail(Error(objects.error()).during("--map-by " + text_of(mapping)));
  const int count = objects->size();
  std::vector<std::vector<int>> ranks_of(count);
  for (int rank = 0; rank < local_ranks; ++rank) {
    const int object = mapping.ranks_per_object > 0 ? rank / mapping.ranks_per_object : rank % count;
    if (object >= count)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("--map-by {} lets the node take {}, and {} are for it", text_of(mapping),
                              counted(std::int64_t{count} * mapping.ranks_per_object, "rank"), local_ranks));
    ranks_of[object].push_back(rank);
  }
  Assignment assignment;
  assignment.ranks.resize(local_ranks);
  for (int i = 0; i < count; ++i) {
    const int ranks = ranks_of[i].size();
    if (ranks == 0) continue;
    auto shared = share_object(topology, policy, usable, (*objects)[i], ranks);
    if (!shared) return fail(std::move(shared.error()).during("--map-by " + text_of(mapping)));
    for (int turn = 0; turn < ranks; ++turn) {
      AssignedRank& own = assignment.ranks[ranks_of[i][turn]];
      own = std::move(shared->ranks[turn]);
      own.why = ranks == 1 ? fmt::format("is mapped to {}", (*objects)[i].name)
                           : fmt::format("is rank {} of {} on {}", turn + 1, ranks, (*objects)[i].name);
    }
    for (const std::string& warning : shared->warnings)
      assignment.warnings.push_back((*objects)[i].name + ": " + warning);
  }
  return assignment;
}

}  // namespace ddl::affinity
