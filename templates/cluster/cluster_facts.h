// What a cluster's Slurm reports about the cluster: partitions, and the nodes in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::templates {

struct Partition {
  std::string name;
  bool is_default = false;
  bool is_up = true;                   ///< jobs are taken and started
  std::optional<int> max_nodes;        ///< of a job; nullopt: no limit
  std::optional<int> max_minutes;      ///< of a job; nullopt: no limit
  std::optional<int> default_minutes;  ///< of a job that requests no time; nullopt: the limit
  int nodes = 0;
  int cpus = 0;
  bool operator==(const Partition&) const = default;
};

/// Nodes with the same properties.
struct NodeKind {
  std::string name;  ///< of one of them
  int count = 1;
  std::vector<std::string> partitions;
  int cpus = 0;  ///< that jobs can have, as Slurm counts them: hardware threads where it knows threads
  int gpus = 0;
  std::int64_t memory_mb = 0;  ///< RealMemory
  std::vector<std::string> features;
  bool operator==(const NodeKind&) const = default;
};

struct ClusterFacts {
  std::string name;     ///< "" if unknown
  std::string version;  ///< of Slurm, "22.05.8"; "" if unknown
  std::vector<Partition> partitions;
  std::vector<NodeKind> nodes;
  bool operator==(const ClusterFacts&) const = default;
};

/// Longer text is refused. It is enough for more than a hundred thousand nodes, no two of them alike.
inline constexpr std::size_t kMaxClusterText = std::size_t{16} << 20;

/// Merges kinds that differ only in name and count, in the position and with the name of the first.
std::vector<NodeKind> merged(const std::vector<NodeKind>& kinds);

/// One line of JSON with its newline, as docs/reference/slurm-probe.md has it. Pure.
std::string cluster_facts_json(const ClusterFacts& facts);
/// The reverse; unknown keys are ignored. Error kProtocol: the text is not such JSON, or longer than
/// kMaxClusterText. Never throws.
Result<ClusterFacts> cluster_facts_from_json(std::string_view text);

/// From the output of "scontrol --oneliner show partition" and "scontrol --oneliner show node", which has no cluster
/// name. Error kProtocol: no partition, or a field that is missing or not understood. Pure.
Result<ClusterFacts> cluster_facts_from_scontrol(std::string_view partitions, std::string_view nodes);

}  // namespace ddl::templates
