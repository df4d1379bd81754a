#include "templates/cluster/cluster_check.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/text.h"

namespace ddl::templates {
namespace {

using Objections = std::vector<ClusterObjection>;
using Kinds = std::vector<const NodeKind*>;

std::string cluster_text(const ClusterFacts& facts) {
  return facts.name.empty() ? "this cluster" : "cluster " + facts.name;
}

/// "gpu, main"; of many partitions the first ones.
std::string names_of(const std::vector<Partition>& partitions) {
  constexpr std::size_t kMaxNames = 12;
  std::vector<std::string> names;
  for (const Partition& partition : partitions) {
    if (names.size() < kMaxNames) names.push_back(partition.name);
  }
  const std::size_t more = partitions.size() - names.size();
  return join(names, ", ") + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

/// "1 day 2 hours 5 minutes".
std::string time_text(int minutes) {
  constexpr int kHour = 60, kDay = 24 * kHour;
  std::vector<std::string> parts;
  if (minutes >= kDay) parts.push_back(counted(minutes / kDay, "day"));
  if (minutes % kDay >= kHour) parts.push_back(counted(minutes % kDay / kHour, "hour"));
  if (minutes % kHour > 0 || parts.empty()) parts.push_back(counted(minutes % kHour, "minute"));
  return join(parts, " ");
}

const char* were(std::int64_t count) { return count == 1 ? " was" : " were"; }

/// The partition whose name is closest to what was written; null if none is close.
const Partition* closest(const ClusterFacts& facts, std::string_view name) {
  constexpr std::size_t kMaxLength = 64;
  if (name.size() > kMaxLength) return nullptr;
  const std::string wanted = in_lower_case(name);
  const Partition* found = nullptr;
  int smallest = std::numeric_limits<int>::max();
  for (const Partition& partition : facts.partitions) {
    if (partition.name.size() > kMaxLength) continue;
    const std::string candidate = in_lower_case(partition.name);
    int distance = edit_distance(wanted, candidate);
    // "gpu" for "gpu-a100", or the other way round.
    if (wanted.size() >= 3 && (candidate.starts_with(wanted) || wanted.starts_with(candidate)))
      distance = std::min(distance, 1);
    const int close_enough = std::max(wanted.size(), candidate.size()) / 3;
    if (distance <= close_enough && distance < smallest) {
      smallest = distance;
      found = &partition;
    }
  }
  return found;
}

const Partition* partition_called(const ClusterFacts& facts, std::string_view name) {
  const auto found = std::find_if(facts.partitions.begin(), facts.partitions.end(),
                                  [&](const Partition& partition) { return partition.name == name; });
  return found == facts.partitions.end() ? nullptr : &*found;
}

ClusterObjection no_such_partition(const ClusterFacts& facts, const std::string& name) {
  std::string sentence = cluster_text(facts) + " has no partition " + name;
  if (const Partition* suggestion = closest(facts, name)) {
    sentence += "; did you mean " + suggestion->name + "?";
  } else {
    sentence += "; it has " + names_of(facts.partitions);
  }
  return {"no-such-partition", std::move(sentence)};
}

/// A quantity that a node has and a request asks for.
struct Resource {
  std::string rule;
  std::string text;  ///< "9 GPUs"
  std::string none;  ///< "no GPU"
  std::int64_t wanted;
  const char* verb;  ///< " was" or " were" asked for
  std::function<std::int64_t(const NodeKind&)> of;
  std::function<std::string(std::int64_t)> count_text;
};

std::vector<Resource> resources_of(const ClusterRequest& request) {
  const auto of_noun = [](const char* noun) {
    return [noun](std::int64_t count) { return counted(count, noun); };
  };
  const auto megabytes = [](std::int64_t count) { return std::to_string(count) + " MB of memory"; };
  const std::int64_t memory = request.memory_mb_per_node.value_or(0);
  return {
      {"no-node-with-so-many-gpus", counted(request.gpus_per_node, "GPU"), "no GPU", request.gpus_per_node,
       were(request.gpus_per_node), [](const NodeKind& kind) { return kind.gpus; }, of_noun("GPU")},
      {"too-many-cpus-per-node", counted(request.cpus_per_node, "CPU"), "no CPU", request.cpus_per_node,
       were(request.cpus_per_node), [](const NodeKind& kind) { return kind.cpus; }, of_noun("CPU")},
      {"too-much-memory", megabytes(memory), "no memory that Slurm knows of", memory, " was",
       [](const NodeKind& kind) { return kind.memory_mb; }, megabytes}};
}

bool fits(const NodeKind& kind, const std::vector<Resource>& resources) {
  return std::all_of(resources.begin(), resources.end(),
                     [&](const Resource& resource) { return resource.of(kind) >= resource.wanted; });
}

Kinds kinds_in(const ClusterFacts& facts, const std::string& partition) {
  Kinds kinds;
  for (const NodeKind& kind : facts.nodes) {
    if (std::find(kind.partitions.begin(), kind.partitions.end(), partition) != kind.partitions.end())
      kinds.push_back(&kind);
  }
  return kinds;
}

/// "; partition gpu has such nodes", of the first that has.
std::string elsewhere(const ClusterFacts& facts, const Resource& resource) {
  for (const Partition& partition : facts.partitions) {
    for (const NodeKind* kind : kinds_in(facts, partition.name)) {
      if (resource.of(*kind) >= resource.wanted) return "; partition " + partition.name + " has such nodes";
    }
  }
  return "";
}

void check_nodes(const ClusterFacts& facts, const Partition& partition, const ClusterRequest& request,
                 Objections& objections) {
  const std::string asked = counted(request.nodes, "node");
  if (request.nodes > partition.nodes) {
    objections.push_back({"too-many-nodes", asked + were(request.nodes) + " asked for, and partition " +
                                                partition.name + " has " + std::to_string(partition.nodes)});
  } else if (partition.max_nodes && request.nodes > *partition.max_nodes) {
    objections.push_back({"too-many-nodes", asked + were(request.nodes) + " asked for, and partition " +
                                                partition.name + " gives a job " +
                                                std::to_string(*partition.max_nodes) + " at most"});
  }

  const Kinds kinds = kinds_in(facts, partition.name);
  if (kinds.empty()) return;  // nothing is known of them
  const auto resources = resources_of(request);
  bool each_fits = true;
  for (const Resource& resource : resources) {
    std::int64_t max = 0;
    for (const NodeKind* kind : kinds) max = std::max(max, resource.of(*kind));
    if (resource.wanted <= max) continue;
    each_fits = false;
    objections.push_back(
        {resource.rule, resource.text + " on each node" + resource.verb +
                            " asked for, and a node of partition " + partition.name + " has " +
                            (max == 0 ? resource.none : resource.count_text(max) + " at most") +
                            elsewhere(facts, resource)});
  }
  if (!each_fits || !objections.empty()) return;

  std::int64_t fitting = 0;
  for (const NodeKind* kind : kinds) fitting += fits(*kind, resources) ? kind->count : 0;
  if (fitting >= request.nodes) return;
  std::vector<std::string> texts;
  for (const Resource& resource : resources) {
    if (resource.wanted > 0) texts.push_back(resource.text);
  }
  objections.push_back(
      {"too-many-nodes", asked + " with " + join(texts, " and ") + (request.nodes == 1 ? "" : " each") +
                             were(request.nodes) + " asked for, and partition " + partition.name + " has " +
                             (fitting == 0 ? "no such node" : counted(fitting, "such node"))});
}

Objections check_partition(const ClusterFacts& facts, const Partition& partition,
                           const ClusterRequest& request) {
  Objections objections;
  check_nodes(facts, partition, request, objections);
  if (request.minutes && partition.max_minutes && *request.minutes > *partition.max_minutes) {
    objections.push_back({"above-the-time-limit", "a time of " + time_text(*request.minutes) +
                                                      " was asked for, and partition " + partition.name +
                                                      " gives a job " + time_text(*partition.max_minutes) +
                                                      " at most"});
  }
  if (!partition.is_up) {
    objections.push_back({"partition-down", "partition " + partition.name +
                                                " is not up: Slurm starts no job there at the moment"});
  }
  return objections;
}

}  // namespace

Objections check_against(const ClusterFacts& facts, const ClusterRequest& request) {
  std::vector<const Partition*> partitions;
  if (request.partition.empty()) {
    const auto found = std::find_if(facts.partitions.begin(), facts.partitions.end(),
                                    [](const Partition& partition) { return partition.is_default; });
    if (found == facts.partitions.end()) {
      return {{"no-such-partition", "no partition was named, and " + cluster_text(facts) +
                                        " has no default one; name one of " + names_of(facts.partitions)}};
    }
    partitions.push_back(&*found);
  }
  Objections unknown;
  for (const std::string_view name : split(request.partition, ',')) {
    if (name.empty()) continue;
    if (const Partition* found = partition_called(facts, name)) {
      partitions.push_back(found);
    } else {
      unknown.push_back(no_such_partition(facts, std::string(name)));
    }
  }
  if (!unknown.empty()) return unknown;

  Objections first;
  for (const Partition* partition : partitions) {
    Objections objections = check_partition(facts, *partition, request);
    if (objections.empty()) return {};
    if (first.empty()) first = std::move(objections);
  }
  return first;
}

}  // namespace ddl::templates
