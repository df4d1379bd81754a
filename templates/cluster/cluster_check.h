// Compares what a job requests with what the cluster has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/cluster/cluster_facts.h"

namespace ddl::templates {

struct ClusterRequest {
  std::string partition;  ///< "" for the default one; several, separated by commas: any one will do
  int nodes = 1;
  int gpus_per_node = 0;
  int cpus_per_node = 0;       ///< as Slurm counts them (NodeKind::cpus)
  std::optional<int> minutes;  ///< nullopt: the partition's default
  std::optional<std::int64_t> memory_mb_per_node;
};

/// Why Slurm would refuse a request, or leave it waiting for ever.
struct ClusterObjection {
  /// no-such-partition, partition-down, too-many-nodes, no-node-with-so-many-gpus, too-many-cpus-per-node,
  /// too-much-memory or above-the-time-limit.
  std::string rule;
  std::string sentence;  ///< what was requested and what there is; without a full stop
};

/// All objections; none if, according to the facts, the request can be met. With several partitions there is no
/// objection if one of them can meet it. The limits of accounts and users are not in the facts. Pure.
std::vector<ClusterObjection> check_against(const ClusterFacts& facts, const ClusterRequest& request);

}  // namespace ddl::templates
