// The lint rules in groups, and the context that a rule receives: the parsed script, the site, and the list of
// findings. For the sources of lint/ only; lint.h is what others include.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/lint/lint.h"
#include "templates/lint/script_text.h"

namespace ddl::templates {

// The input of a rule, which is the parsed script and the site, and the list of its findings.

class LintContext {
 public:
  LintContext(std::string_view raw, const SiteProfile* site)
      : raw_(raw), site_(site), script_(read_script(raw)) {}

  std::string_view raw() const { return raw_; }
  const SiteProfile* site() const { return site_; }
  const ScriptText& script() const { return script_; }

  /// The last directive of the name, which is the one that counts; null if there is none.
  const SlurmOption* directive(std::string_view name) const;
  /// The first assignment to the variable; null if there is none.
  const ShellAssignment* assignment(std::string_view name) const;
  /// The value; if it is $NAME or ${NAME} and the script assigns that variable once, what it assigns.
  std::string resolved(const std::string& value) const;

  /// Whether the script, or the shell that runs it, may set the variable. Only false is certain.
  bool may_be_set(std::string_view name) const;
  /// The value with all of $NAME and ${NAME} replaced that the script assigns once; others stay. unset: receives
  /// the names that the script never sets, each once.
  std::string expanded(const std::string& value, std::vector<std::string>& unset) const;

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

// The rules, in groups. Each looks at the script and reports what it finds.

/// The text itself: its first line, its line ends, and the lines that sbatch reads.
void check_form(LintContext& context);
/// The requests of directives.
void check_directives(LintContext& context);
/// The requests of each srun.
void check_steps(LintContext& context);
/// Files that the script writes for srun to start, and the variables that they set.
void check_wrappers(LintContext& context);
/// Lists of CPUs that srun is to bind to.
void check_cpu_lists(LintContext& context);
/// How the script starts the program: on which nodes, how often, and what the script's own shell expands first.
void check_launches(LintContext& context);
/// The rules of the site.
void check_site(LintContext& context, const SiteProfile& site);

}  // namespace ddl::templates
