// What a job asks a cluster for, held against what the cluster has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/cluster/cluster_facts.h"

namespace ddl::templates {

struct ClusterRequest {
  std::string partition;  ///< "" for the default one; with commas between them, several of which one is to do
  int nodes = 1;
  int gpus_per_node = 0;
  int cpus_per_node = 0;       ///< as Slurm counts them (NodeKind::cpus)
  std::optional<int> minutes;  ///< nullopt: the partition's own
  std::optional<std::int64_t> memory_mb_per_node;
};

/// Why Slurm would refuse a request, or leave it waiting for ever.
struct ClusterObjection {
  /// no-such-partition, partition-down, too-many-nodes, no-node-with-so-many-gpus, too-many-cpus-per-node,
  /// too-much-memory or above-the-time-limit.
  std::string rule;
  std::string sentence;  ///< what was asked for and what there is; no full stop at its end
};

/// All of them; none if, for all that the facts tell, the request can be met. Of several partitions none objects if one of
/// them can meet it. What limits accounts and users is not in the facts. Pure.
std::vector<ClusterObjection> check_against(const ClusterFacts& facts, const ClusterRequest& request);

}  // namespace ddl::templates
