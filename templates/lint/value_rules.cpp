// Rules for the values of options: times, sizes and counts, whether they go together, and notes in their place.
#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "templates/cluster/slurm_values.h"
#include "templates/lint/rules.h"

namespace ddl::templates {
namespace {

/// Whether a template has the word, in small letters, in place of a name: "your_account", "my-project",
/// "project_name", "changeme". bare: also "project" alone, which is somebody's name too.
bool is_note(std::string_view word, bool bare) {
  constexpr std::array<std::string_view, 12> kThings = {
      "account", "project",  "partition", "queue",     "qos",         "group",
      "user",    "username", "accountid", "projectid", "reservation", "allocation"};
  constexpr std::array<std::string_view, 6> kRequests = {"changeme", "change_me", "todo",
                                                         "fixme",    "fill_in",   "placeholder"};
  constexpr std::array<std::string_view, 4> kEnds = {"name", "id", "number", "here"};
  constexpr std::string_view kJoints = "-_.";
  if (is_any_of(kRequests, word) || word.starts_with("your")) return true;
  const std::size_t size = word.size();
  if (word.starts_with("my")) word.remove_prefix(2);
  while (!word.empty() && kJoints.find(word.front()) != std::string_view::npos) word.remove_prefix(1);
  for (const std::string_view end : kEnds) {
    if (word.size() > end.size() + 1 && word.ends_with(end) &&
        kJoints.find(word[word.size() - end.size() - 1]) != std::string_view::npos)
      word.remove_suffix(end.size() + 1);
  }
  return is_any_of(kThings, word) && (bare || word.size() < size);
}

/// "xxx" in it, or a word of # or X: "project_465xxxxxx", "nn####k".
bool has_blanks_to_fill(std::string_view lower) {
  return lower.find("xxx") != std::string_view::npos || lower.find("###") != std::string_view::npos ||
         lower.find("...") != std::string_view::npos;
}

/// "<account>", "{account}", "{{ account }}", "[account]", "@account@", in small letters. With other characters in
/// them, brackets are those of lists of nodes and of alternatives.
bool is_in_brackets(std::string_view value) {
  constexpr std::array<std::string_view, 4> kPairs = {"<>", "{}", "[]", "@@"};
  return value.starts_with('<') || std::any_of(kPairs.begin(), kPairs.end(), [&](std::string_view pair) {
           const std::size_t at = value.find(pair[0]);
           const std::size_t end = at == std::string_view::npos ? at : value.find(pair[1], at + 1);
           if (end == std::string_view::npos || (pair == "[]" && at != 0)) return false;
           const std::string_view inside = value.substr(at + 1, end - at - 1);
           return inside.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string_view::npos &&
                  inside.find_first_not_of("abcdefghijklmnopqrstuvwxyz_- {}") == std::string_view::npos;
         });
}

/// Capitals alone in place of a number: "N", "NTASKS", "*FIXME*".
bool is_number_note(std::string_view value) {
  return value.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_-*?") == std::string_view::npos &&
         value.find_first_not_of('-') != std::string_view::npos;
}

bool is_time_note(std::string_view lower) {
  return !lower.empty() && lower.find_first_not_of("dhms:-") == std::string_view::npos &&
         lower.find_first_not_of(":-") != std::string_view::npos && lower.find(':') != std::string_view::npos;
}

}  // namespace

bool is_placeholder(const SlurmOption& option) {
  constexpr std::array<std::string_view, 10> kOfNames = {
      "--account",    "--partition", "--qos",      "--reservation", "--mail-user",
      "--constraint", "--nodelist",  "--clusters", "--licenses",    "--wckey"};
  // Any text is right there.
  constexpr std::array<std::string_view, 3> kOfText = {"--job-name", "--comment", "--wrap"};
  if (is_any_of(kOfText, option.name) || option.value.empty()) return false;
  // A shell's own.
  if (option.value.find_first_of("$`") != std::string::npos) return false;
  const std::string lower = in_lower_case(option.value);
  if (option.name == "--time" || option.name == "--time-min")
    return is_in_brackets(lower) || is_time_note(lower) || lower == "time" ||
           (is_number_note(option.value) && lower != "unlimited" && lower != "infinite");
  if (option.name == "--output" || option.name == "--error" || option.name == "--input" ||
      option.name == "--chdir")
    return lower.find("/path/to/") != std::string::npos || is_in_brackets(lower) || lower.find("/your") == 0;
  if (option.name == "--array" || option.name == "--export") return false;
  if (option.name == "--nodes" || option.name.starts_with("--ntasks") ||
      option.name.starts_with("--cpus-per") || option.name == "--mem" ||
      option.name.starts_with("--mem-per") || option.name == "--mincpus")
    return is_in_brackets(lower) || is_number_note(option.value);
  if (option.name == "--mail-user") {
    const std::string_view of = std::string_view(lower).substr(std::min(lower.find('@') + 1, lower.size()));
    if (of.starts_with("your") || is_note(std::string_view(lower).substr(0, lower.find('@')), /*bare=*/false))
      return true;
  }
  if (is_in_brackets(lower)) return true;
  // In capitals, or as the option itself is called.
  const bool bare = option.value == in_upper_case(option.value) || option.name.substr(2) == lower;
  return is_any_of(kOfNames, option.name) && (is_note(lower, bare) || has_blanks_to_fill(lower));
}

namespace {

bool is_open(const SlurmOption& option) {
  return option.value.find_first_of("$`~") != std::string::npos || is_placeholder(option);
}

/// A letter's value follows without =: then the = is a part of the value.
std::string without_equals(const SlurmOption& option) {
  return option.value.starts_with('=') ? "; a letter's value follows it without =" : "";
}

/// Not for what a variable says, or a plugin of the site's may understand.
void check_times(LintContext& context, const std::vector<SlurmOption>& options) {
  for (const SlurmOption& option : options) {
    if (option.name != "--time" && option.name != "--time-min") continue;
    const std::string& value = option.value;
    // A blank behind = is reported with the word that follows.
    if (value.empty() || value == "=") continue;
    const std::string word = in_lower_case(value);
    const bool is_time = slurm_minutes(value) || word == "infinite" || word == "unlimited" || value == "-1";
    // Days with a hyphen and no hours are a time too.
    if (is_time || value.ends_with('-') || is_open(option)) continue;
    context.report("bad-time", option.line,
                   "'" + value + "' of " + option.name +
                       " is not a time, and Slurm refuses the job; write minutes (30), 30:00, 2:00:00, 1-12 "
                       "or 1-12:00:00" +
                       without_equals(option));
  }
}

/// Not for what a variable says.
void check_other_values(LintContext& context, const std::vector<SlurmOption>& options) {
  for (const SlurmOption& option : options) {
    // A blank behind = is reported with the word that follows.
    if (option.value.empty() || option.value == "=" || is_open(option)) continue;
    const std::string wrong = wrong_slurm_value(option.name, option.value);
    if (!wrong.empty()) {
      context.report("bad-value", option.line,
                     option.name + ": " + wrong + "; Slurm refuses the job" + without_equals(option));
    } else if (option.value.starts_with('=') && option.name != "--time" && option.name != "--time-min") {
      context.report("equals-after-letter", option.line,
                     "the value of the letter for " + option.name +
                         " follows it without =, and Slurm takes '" + option.value + "' for it; write " +
                         option.name + option.value);
    }
  }
}

void check_placeholders(LintContext& context, const std::vector<SlurmOption>& options) {
  for (const SlurmOption& option : options) {
    if (!is_placeholder(option)) continue;
    context.report("placeholder", option.line,
                   "'" + option.value + "' of " + option.name +
                       " looks like a note for who uses the script; write your own value, or give it on "
                       "sbatch's command line");
  }
}

/// Reports two different requests for memory.
void check_memory(LintContext& context, const std::vector<SlurmOption>& options) {
  const SlurmOption* first = nullptr;
  for (const SlurmOption& option : options) {
    if (option.name != "--mem" && option.name != "--mem-per-cpu" && option.name != "--mem-per-gpu") continue;
    if (first == nullptr) first = &option;
    if (first->name == option.name) continue;
    context.report(
        "mem-twice", option.line,
        option.name + " is used together with " + first->name + on_line(first->line, option.line) +
            ", and Slurm takes only one of --mem, --mem-per-cpu and --mem-per-gpu; remove one of them");
    return;
  }
}

bool asks_for_gpus(const LintContext& context) {
  const auto& all = context.script().directives;
  return std::any_of(all.begin(), all.end(), [](const SlurmOption& one) {
    return one.name.starts_with("--gpus") ||
           (one.name == "--gres" && one.value.find("gpu") != std::string::npos);
  });
}

/// A size without a unit that no program of this kind can do with.
void check_megabytes(LintContext& context) {
  const std::int64_t node = asks_for_gpus(context) ? 1024 : 257;
  const std::map<std::string_view, std::int64_t> too_small = {
      {"--mem", node}, {"--mem-per-cpu", 64}, {"--mem-per-gpu", 1024}};
  for (const auto& [name, limit] : too_small) {
    const SlurmOption* option = context.directive(name);
    const auto size = count_of(option);
    if (!size || *size >= limit) continue;
    context.report("mem-in-megabytes", option->line,
                   option->name + "=" + option->value + " is " + option->value +
                       " megabytes, which hardly any program can do with; write " + option->name + "=" +
                       option->value + "G if gigabytes are meant");
  }
}

/// Another value of the same option, which replaces the first. Those of --mail-type add up.
void check_twice(LintContext& context, const std::vector<SlurmOption>& options) {
  std::map<std::string_view, const SlurmOption*> seen;
  for (const SlurmOption& option : options) {
    const auto [first, is_new] = seen.try_emplace(option.name, &option);
    if (is_new || first->second->value == option.value || option.value.empty() ||
        option.name == "--mail-type")
      continue;
    context.report("option-twice", option.line,
                   option.name + "=" + option.value + " replaces " + option.name + "=" +
                       first->second->value + on_line(first->second->line, option.line) +
                       "; remove one of them");
    first->second = &option;
  }
}

/// "4" of "4" and "a100:4".
std::optional<std::int64_t> gpu_count(const SlurmOption* option) {
  if (option == nullptr || option->value.find(',') != std::string::npos) return std::nullopt;
  const SlurmOption count{option->name, option->value.substr(option->value.rfind(':') + 1), option->line};
  return count_of(&count);
}

std::string text_of(const SlurmOption& option) { return option.name + "=" + option.value; }

void check_counts(LintContext& context) {
  const SlurmOption* nodes = context.directive("--nodes");
  const SlurmOption* tasks = context.directive("--ntasks");
  const SlurmOption* per_node = context.directive("--ntasks-per-node");
  const SlurmOption* gpus = context.directive("--gpus");
  const SlurmOption* gpus_per_node = context.directive("--gpus-per-node");
  const SlurmOption* gpus_per_task = context.directive("--gpus-per-task");
  const auto report = [&](const SlurmOption& a, const SlurmOption& b, const std::string& why) {
    const bool a_is_later = a.line >= b.line;
    context.report("counts-contradict", std::max(a.line, b.line),
                   text_of(a_is_later ? a : b) + " contradicts " + text_of(a_is_later ? b : a) +
                       on_line(std::min(a.line, b.line), std::max(a.line, b.line)) + ": " + why);
  };
  const auto n = count_of(nodes);
  const auto t = count_of(tasks);
  const auto p = count_of(per_node);
  if (n && t && *t < *n)
    report(*nodes, *tasks,
           "Slurm gives the job no more nodes than tasks; ask for one task on each node at least");
  if (n && t && p && *t > *n * *p && context.directive("--overcommit") == nullptr)
    report(*tasks, *per_node,
           counted(*n, "node") + " with at most " + counted(*p, "task") +
               " each do not hold them, and Slurm refuses the job; omit one of the numbers");
  const auto all = gpu_count(gpus);
  const auto on_node = gpu_count(gpus_per_node);
  const auto of_task = gpu_count(gpus_per_task);
  if (n && all && on_node && *all != *n * *on_node)
    report(
        *gpus, *gpus_per_node,
        counted(*n, "node") + " have " + std::to_string(*n * *on_node) + " of them; omit one of the numbers");
  if (t && all && of_task && *all != *t * *of_task)
    report(
        *gpus, *gpus_per_task,
        counted(*t, "task") + " have " + std::to_string(*t * *of_task) + " of them; omit one of the numbers");
  if (nodes == nullptr || !n) return;
  for (const ScriptStep& step : context.script().steps) {
    const SlurmOption* own = find_option(step.options, "--nodes");
    const auto more = count_of(own);
    if (more && *more > *n) report(*own, *nodes, "srun gets no more nodes than the job has");
  }
}

}  // namespace

void check_values(LintContext& context) {
  const ScriptText& script = context.script();
  if (!script.is_heterogeneous()) {
    check_memory(context, script.directives);
    check_megabytes(context);
    check_twice(context, script.directives);
    check_counts(context);
  }
  check_times(context, script.directives);
  check_other_values(context, script.directives);
  check_placeholders(context, script.directives);
  for (const ScriptStep& step : script.steps) {
    check_memory(context, step.options);
    check_times(context, step.options);
    check_other_values(context, step.options);
    check_placeholders(context, step.options);
  }
}

}  // namespace ddl::templates
