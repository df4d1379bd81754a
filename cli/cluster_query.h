// Asks the cluster about itself.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "templates/cluster/cluster_facts.h"

namespace ddl::cli {

/// Where slurm-probe lies beside this ddlrun, in the build and install trees; whether it is there is another question.
std::string slurm_probe_path();

/// What Slurm says of the cluster: asked by the program at probe_path ("" for none), and where that is missing or fails, by
/// scontrol. Blocks, at most for patience. Reads SLURM_CONF and PATH; the caller's SIGCHLD may not be ignored.
/// Errors: kNotFound, there is no Slurm here, told without starting anything; else why there is no answer.
Result<templates::ClusterFacts> ask_cluster(const std::string& probe_path,
                                            std::chrono::milliseconds patience);

}  // namespace ddl::cli
