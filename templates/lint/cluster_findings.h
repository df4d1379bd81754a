// Compares a job script with the cluster at hand.
#pragma once

#include <vector>

#include "templates/cluster/cluster_facts.h"
#include "templates/lint/lint.h"
#include "templates/script/batch_job.h"

namespace ddl::templates {

/// Why Slurm there would refuse the job, or leave it waiting. These are errors if the job is to be submitted there
/// (is_for_it), and otherwise warnings, because the script may be for another cluster. Pure.
std::vector<LintFinding> cluster_findings(const ClusterFacts& facts, const ScriptRequest& request,
                                          const BatchJob& job, bool is_for_it);

}  // namespace ddl::templates
