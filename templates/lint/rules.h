// The lint rules in groups, and the context that a rule receives: the parsed script, the site, and the list of
// findings. For the sources of lint/ only; lint.h is what others include.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/lint/lint.h"
#include "templates/lint/script_text.h"

namespace ddl::templates {

/// What some editors write in front of a text in UTF-8.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The input of a rule, which is the parsed script and the site, and the list of its findings.

class LintContext {
 public:
  LintContext(std::string_view raw, const SiteProfile* site);

  std::string_view raw() const { return raw_; }
  const SiteProfile* site() const { return site_; }
  const ScriptText& script() const { return script_; }

  /// The last directive of the name, which is the one that counts; null if there is none.
  const SlurmOption* directive(std::string_view name) const;
  const ShellVariables& variables() const { return script_.variables; }
  /// Where a step expands its words, for ShellVariables: nullopt in a function, which may be called at any place.
  std::optional<std::size_t> place_of(const ScriptStep& step) const;

  /// rule: one of lint_rules().
  void report(std::string_view rule, int line, std::string sentence);
  std::vector<LintFinding> take_findings() { return std::move(findings_); }

 private:
  std::string_view raw_;
  const SiteProfile* site_;
  ScriptText script_;
  std::vector<LintFinding> findings_;
};

/// The last one of the name; null if there is none.
const SlurmOption* find_option(const std::vector<SlurmOption>& options, std::string_view name);
/// A whole number of at least 1 in a directive; nullopt for ranges, units or variables.
std::optional<std::int64_t> count_of(const SlurmOption* option);
/// " on line 3"; "" for the same line.
std::string on_line(int other, int line);
/// The option of the srun, or else the directive; null if there is neither.
const SlurmOption* option_of(const LintContext& context, const ScriptStep& step, std::string_view name);
/// The first number of --nodes; 1 if there is none that is certain.
std::int64_t nodes_of_job(const LintContext& context);
/// Whether the value is a note for who fills in the script: <account>, YOUR_PROJECT, xxx, HH:MM:SS.
bool is_placeholder(const SlurmOption& option);
/// How many tasks of the srun a node has at most, as the script itself says.
enum class TasksOfNode {
  kOne,
  kSeveral,
  kUnsaid,   ///< it gives no number: one, unless sbatch's command line gives another
  kUnknown,  ///< it gives one that is not certain here
};
TasksOfNode tasks_of_node(const LintContext& context, const ScriptStep& step);
/// Whether srun's words are known up to its program, so that all of its options are.
bool has_all_options(const ScriptStep& step);
/// Whether the script is a job's own. A script without directives that takes arguments is started by another script,
/// perhaps for each task.
bool is_jobs_own(const LintContext& context);

/// Variables that srun sets for each task. In the batch script they have the values of its first task, or are unset.
bool is_task_variable(std::string_view name);
/// The variables that choose a rank's GPUs.
std::span<const std::string_view> device_variables();

bool is_any_of(std::span<const std::string_view> names, std::string_view name);

// The rules, in groups. Each looks at the script and reports what it finds.

/// The text itself: its first line, its line ends, and the lines that sbatch reads.
void check_form(LintContext& context);
/// The requests of directives.
void check_directives(LintContext& context);
/// What the values of options are, and whether they go together.
void check_values(LintContext& context);
/// Files and folders that the script names too early, or for one node only, and variables that no option sets.
void check_outputs(LintContext& context);
/// The requests of each srun.
void check_steps(LintContext& context);
/// Files that the script writes for srun to start, the variables that they set, and variables of a task that the
/// script's own shell replaces.
void check_wrappers(LintContext& context);
/// Lists of CPUs that srun is to bind to.
void check_cpu_lists(LintContext& context);
/// How the script starts the program: on which nodes, how often, and with which signals.
void check_launches(LintContext& context);
/// torchrun and other launchers of ranks, beside srun.
void check_launchers(LintContext& context);
/// The rules of the site.
void check_site(LintContext& context, const SiteProfile& site);

}  // namespace ddl::templates
