// The rules, in groups. Each looks at the script and reports what it finds.
#pragma once

#include "templates/lint/lint_context.h"

namespace ddl::templates {

/// The text itself: its first line, its line ends, and which lines sbatch reads.
void check_form(LintContext& context);
/// What directives ask for.
void check_directives(LintContext& context);
/// What each srun asks for.
void check_steps(LintContext& context);
/// Files that the script writes for srun to start, and the variables that they set.
void check_wrappers(LintContext& context);
/// Lists of CPUs that srun is to bind to.
void check_cpu_lists(LintContext& context);
/// How the script starts the program: on which nodes, how often, and what its own shell makes of it first.
void check_launches(LintContext& context);
/// What holds at the site only.
void check_site(LintContext& context, const SiteProfile& site);

}  // namespace ddl::templates
