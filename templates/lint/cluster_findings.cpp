#include "templates/lint/cluster_findings.h"

#include <algorithm>

#include "templates/cluster/cluster_check.h"
#include "templates/cluster/slurm_values.h"

namespace ddl::templates {

std::vector<LintFinding> cluster_findings(const ClusterFacts& facts, const ScriptRequest& request,
                                          const BatchJob& job, bool is_for_it) {
  ClusterRequest asked;
  asked.partition = job.partition;
  asked.nodes = std::max(job.nodes, 1);
  asked.gpus_per_node = job.gpus_per_node;
  asked.cpus_per_node = job.tasks_per_node * std::max(job.cpus_per_task, 1);
  asked.minutes = slurm_minutes(request.time_limit);
  asked.memory_mb_per_node = slurm_megabytes(job.memory);
  std::vector<LintFinding> findings;
  for (const ClusterObjection& objection : check_against(facts, asked)) {
    findings.push_back({objection.rule, is_for_it ? LintSeverity::kError : LintSeverity::kWarning, 0,
                        objection.sentence, "the cluster here"});
  }
  return findings;
}

}  // namespace ddl::templates
