// Asks the cluster at hand about its partitions and nodes: by slurm-probe, and without that by
// scontrol.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "templates/cluster/cluster_facts.h"

namespace ddl::templates {

/// What Slurm reports about the cluster to the program at probe_path ("" for none), or, if that is missing or fails,
/// to scontrol. Blocks, at most for patience. Reads SLURM_CONF and PATH; the caller's SIGCHLD may not be ignored.
/// Errors: kNotFound, there is no Slurm here (nothing is started to find this out); else why there is no answer.
Result<ClusterFacts> ask_cluster(const std::string& probe_path, std::chrono::milliseconds patience);

}  // namespace ddl::templates
