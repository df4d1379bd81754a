#include "base/text.h"
#include "templates/cluster/slurm_time.h"
#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text;
}

/// A name that no option is near may be one of a plugin of the site's: nothing is said of it.
void check_names(LintContext& context, const std::vector<SlurmOption>& options, SlurmProgram program) {
  const bool by_sbatch = program == SlurmProgram::kSbatch;
  const std::string refuses = by_sbatch ? "sbatch refuses the script" : "srun starts nothing";
  for (const SlurmOption& option : options) {
    if (!option.name.starts_with("--")) continue;
    const OptionNameCheck check = check_option_name(option.name, program);
    if (check.name == OptionName::kUnknown && !check.close.empty()) {
      context.report(
          "unknown-option", option.line,
          "there is no option " + option.name + ", and " + refuses + "; write " + listed(check.close));
    } else if (check.name == OptionName::kAmbiguous) {
      context.report("unknown-option", option.line,
                     option.name + " may mean " + listed(check.close) + ", and " + refuses +
                         "; write the option in full");
    } else if (check.name == OptionName::kOtherPrograms) {
      context.report(
          "unknown-option", option.line,
          by_sbatch
              ? option.name + " is an option of srun, and sbatch refuses the script; move it to the srun"
              : option.name + " is an option of sbatch, and srun starts nothing; make it a directive");
    }
  }
}

/// Not for what a variable says, or a plugin of the site's may understand.
void check_times(LintContext& context, const std::vector<SlurmOption>& options) {
  for (const SlurmOption& option : options) {
    if (option.name != "--time" && option.name != "--time-min") continue;
    const std::string& value = option.value;
    std::string word;
    for (const char c : value) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool is_time = slurm_minutes(value) || word == "infinite" || word == "unlimited" || value == "-1";
    // Days with no hours behind their hyphen are a time, too.
    if (is_time || value.ends_with('-') || value.find_first_of("$`") != std::string::npos) continue;
    context.report(
        "bad-time", option.line,
        "'" + value + "' of " + option.name +
            " is no time, and Slurm refuses the job; write minutes (30), 30:00, 2:00:00, 1-12 or 1-12:00:00");
  }
}

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
  check_names(context, script.directives, SlurmProgram::kSbatch);
  check_times(context, script.directives);
  for (const ScriptStep& step : script.steps) {
    check_memory(context, step.options);
    check_signal(context, find_option(step.options, "--signal"));
    check_names(context, step.options, SlurmProgram::kSrun);
    check_times(context, step.options);
  }
}

}  // namespace ddl::templates
