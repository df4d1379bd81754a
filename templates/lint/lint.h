// What is likely to go wrong with a Slurm job script.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "templates/cluster/cluster_facts.h"
#include "templates/profile/site_profile.h"
#include "templates/script/batch_job.h"

namespace ddl::templates {

enum class LintSeverity {
  kNote,     ///< it does what was meant, but not always, or not as well as it could
  kWarning,  ///< it may do what was meant
  kError,    ///< it does not start, or does something else
};

/// "note", "warning" or "error"
std::string_view name_of(LintSeverity severity);

struct LintRule {
  std::string_view name;  ///< "mem-twice"
  LintSeverity severity = LintSeverity::kWarning;
  std::string_view reference;  ///< the source of the rule: "sbatch(1), --mem"
};

struct LintFinding {
  std::string rule;
  LintSeverity severity = LintSeverity::kWarning;
  int line = 0;          ///< counted from 1; 0: the script as a whole
  std::string sentence;  ///< what is wrong, and what to write instead
  std::string reference;
};

/// All rules; docs/reference/lint.md says what each finds. Static.
std::span<const LintRule> lint_rules();

/// The nodes that the directives of a script request. Pure.
NodeRequest nodes_of_script(std::string_view script);

/// In the order of lines. Pure. A rule that cannot be sure of what the script does finds nothing.
/// site: of the nodes that the script requests. If none is named (nullptr), or it is for jobs of other nodes, the rules of
/// sites do not apply.
std::vector<LintFinding> lint_script(std::string_view script, const SiteProfile* site);

/// Why Slurm there would refuse the job, or leave it waiting. These are errors if the job is to be submitted there
/// (is_for_it), and otherwise warnings, because the script may be for another cluster. Pure.
std::vector<LintFinding> cluster_findings(const ClusterFacts& facts, const ScriptRequest& request,
                                          const BatchJob& job, bool is_for_it);

}  // namespace ddl::templates
