#include "cli/cluster_findings.h"

#include <algorithm>

#include "templates/cluster/cluster_check.h"
#include "templates/cluster/slurm_values.h"

namespace ddl::cli {

std::vector<templates::LintFinding> cluster_findings(const templates::ClusterFacts& facts,
                                                     const templates::ScriptRequest& request,
                                                     const templates::BatchJob& job, bool is_for_it) {
  templates::ClusterRequest asked;
  asked.partition = job.partition;
  asked.nodes = std::max(job.nodes, 1);
  asked.gpus_per_node = job.gpus_per_node;
  asked.cpus_per_node = job.tasks_per_node * std::max(job.cpus_per_task, 1);
  asked.minutes = templates::slurm_minutes(request.time_limit);
  asked.memory_mb_per_node = templates::slurm_megabytes(job.memory);
  std::vector<templates::LintFinding> findings;
  for (const templates::ClusterObjection& objection : templates::check_against(facts, asked)) {
    findings.push_back({objection.rule,
                        is_for_it ? templates::LintSeverity::kError : templates::LintSeverity::kWarning, 0,
                        objection.sentence, "the cluster here"});
  }
  return findings;
}

}  // namespace ddl::cli
