#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

/// Two of the ways to ask for memory.
void check_memory(LintContext& context, const std::vector<SlurmOption>& options) {
  const SlurmOption* first = nullptr;
  for (const SlurmOption& option : options) {
    if (option.name != "--mem" && option.name != "--mem-per-cpu" && option.name != "--mem-per-gpu") continue;
    if (first == nullptr) first = &option;
    if (first->name == option.name) continue;
    context.report(
        "mem-twice", option.line,
        option.name + " stands beside " + first->name + on_line(first->line, option.line) +
            ", and Slurm takes only one of --mem, --mem-per-cpu and --mem-per-gpu; remove one of them");
    return;
  }
}

/// "10", "USR1", "SIGUSR1", each perhaps with R: in front and @60 behind. With B: the ranks do not get it.
void check_signal(LintContext& context, const SlurmOption* option) {
  if (option == nullptr) return;
  std::string_view signal = option->value;
  signal = signal.substr(0, signal.find('@'));
  const std::size_t colon = signal.find(':');
  if (colon != std::string_view::npos) {
    if (signal.substr(0, colon).find('B') != std::string_view::npos) return;
    signal.remove_prefix(colon + 1);
  }
  if (signal.starts_with("SIG")) signal.remove_prefix(3);
  if (signal != "USR1" && signal != "10") return;
  context.report(
      "signal-usr1", option->line,
      "NCCL may catch SIGUSR1, and then the program does not get it; let the program wait for SIGUSR2, and "
      "write USR2 here");
}

void check_requeue(LintContext& context) {
  const SlurmOption* requeue = context.directive("--requeue");
  const SlurmOption* mode = context.directive("--open-mode");
  if (requeue == nullptr || (mode != nullptr && mode->value.starts_with('a'))) return;
  context.report(
      "requeue-open-mode", requeue->line,
      "a job that is started again empties its output file first, unless the site has changed Slurm's "
      "default; add #SBATCH --open-mode=append");
}

}  // namespace

void check_directives(LintContext& context) {
  const ScriptText& script = context.script();
  if (!script.is_heterogeneous) check_memory(context, script.directives);
  check_signal(context, context.directive("--signal"));
  check_requeue(context);
  for (const ScriptStep& step : script.steps) {
    check_memory(context, step.options);
    check_signal(context, find_option(step.options, "--signal"));
  }
}

}  // namespace ddl::templates
