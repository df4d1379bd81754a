// Rules for torchrun and other programs that start several ranks on a node: how often they are started, and where; for
// components that no srun uses; and for what a shell reads in a shell's -c.
#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "templates/lint/rules.h"
#include "templates/lint/started_programs.h"

namespace ddl::templates {
namespace {

/// The first launcher that the words start; wrappers: also behind a script such as ./select_gpu.
struct Started {
  NodeLauncher launcher = NodeLauncher::kNone;
  std::vector<std::string> words;
};
Started started_launcher(Words words, bool through_wrappers) {
  for (std::vector<std::string>& program : started_programs(words)) {
    Words own = program;
    const bool is_wrapper = file_name_of(own.front()).ends_with(".sh") || own.front().starts_with("./");
    if (is_wrapper && through_wrappers) own = without_prefixes(own.subspan(1));
    const NodeLauncher launcher = is_wrapper && !through_wrappers ? NodeLauncher::kNone : node_launcher(own);
    if (launcher != NodeLauncher::kNone) return {launcher, {own.begin(), own.end()}};
  }
  return {};
}

bool has_word(const std::vector<std::string>& words, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view one) { return word.starts_with(one); });
  });
}

/// Whether it is told which hosts there are, and starts ranks on them by itself.
bool knows_hosts(const Started& started) {
  switch (started.launcher) {
    case NodeLauncher::kDeepspeed:
      return has_word(started.words, {"--hostfile", "-H", "--launcher", "--no_ssh"});
    case NodeLauncher::kHorovodrun:
      return has_word(started.words, {"-H", "--hosts", "--hostfile", "-hostfile", "--host-discovery-script"});
    case NodeLauncher::kAccelerate:
      return has_word(started.words, {"--deepspeed_hostfile", "--deepspeed-hostfile"});
    default: return false;
  }
}

/// Whether the script may be started on the other nodes too.
bool may_reach_nodes(const LintContext& context) {
  constexpr std::array<std::string_view, 5> kRemote = {"ssh", "pdsh", "clush", "parallel", "blaunch"};
  const ScriptText& script = context.script();
  const bool has_remote =
      std::any_of(script.commands.begin(), script.commands.end(), [&](const ShellCommand& command) {
        return std::any_of(command.words.begin(), command.words.end(), [&](const ShellWord& word) {
          return is_any_of(kRemote, file_name_of(word.text));
        });
      });
  const bool has_itself = std::any_of(script.steps.begin(), script.steps.end(), [](const ScriptStep& step) {
    return std::any_of(step.program.begin(), step.program.end(), [](const std::string& word) {
      return word.find("$0") != std::string::npos || word.find("BASH_SOURCE") != std::string::npos;
    });
  });
  return has_remote || has_itself;
}

void check_on_one_node(LintContext& context) {
  const ScriptText& script = context.script();
  const std::int64_t nodes = nodes_of_job(context);
  if (nodes < 2 || script.is_heterogeneous() || may_reach_nodes(context)) return;
  for (const ShellCommand& command : script.commands) {
    // A function may be what an srun starts.
    if (command.in_function && !script.steps.empty()) continue;
    const Started started = started_launcher(texts_of(command.words), /*through_wrappers=*/false);
    if (started.launcher == NodeLauncher::kNone || knows_hosts(started)) continue;
    const bool has_hosts =
        started.launcher == NodeLauncher::kHorovodrun || started.launcher == NodeLauncher::kDeepspeed;
    const std::string name(name_of(started.launcher));
    context.report("launcher-on-one-node", command.line,
                   "the job has " + counted(nodes, "node") + ", and the script starts " + name +
                       " on the first only, where it waits for the others or leaves them unused; write srun "
                       "--ntasks-per-node=1 in front of it" +
                       (has_hosts ? ", or tell it the hosts" : "") + ", or let ddlrun start the ranks");
    return;
  }
}

/// Whether each instance starts one rank.
bool starts_one(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 4> kCounts = {"--nproc_per_node", "--nproc-per-node", "--num_gpus",
                                                       "--num_processes"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view count : kCounts) {
      if (words[i] == std::string(count) + "=1" ||
          (words[i] == count && i + 1 < words.size() && words[i + 1] == "1"))
        return true;
    }
  }
  return false;
}

/// The variable of GPUs that the task's local number chooses, in the words or anywhere in the script; "" for none.
std::string device_by_task(const LintContext& context, const ScriptStep& step) {
  const auto is_by_task = [](std::string_view value) {
    return value.find("SLURM_LOCALID") != std::string_view::npos ||
           value.find("SLURM_PROCID") != std::string_view::npos;
  };
  for (const std::string_view name : device_variables()) {
    for (const std::size_t index : context.variables().indices_of(name)) {
      if (is_by_task(context.variables().all()[index].value)) return std::string(name);
    }
    for (const std::string& word : step.program) {
      const std::size_t at = word.find(std::string(name) + "=");
      if (at != std::string::npos &&
          is_by_task(std::string_view(word).substr(at, word.find_first_of(" ;\n", at) - at)))
        return std::string(name);
    }
  }
  return "";
}

void check_in_steps(LintContext& context) {
  for (const ScriptStep& step : context.script().steps) {
    const Started started = started_launcher(step.program, /*through_wrappers=*/true);
    if (started.launcher == NodeLauncher::kNone || starts_one(started.words)) continue;
    const std::string name(name_of(started.launcher));
    const TasksOfNode tasks = tasks_of_node(context, step);
    if (tasks == TasksOfNode::kSeveral) {
      context.report("launcher-per-task", step.line,
                     "srun starts " + name +
                         " several times on a node, and each of them starts ranks for all of its "
                         "GPUs; write srun --ntasks-per-node=1 with all CPUs of the node, or start the "
                         "program without " +
                         name);
    }
    if (tasks != TasksOfNode::kOne && tasks != TasksOfNode::kUnsaid) continue;
    const std::string device = device_by_task(context, step);
    if (device.empty()) continue;
    context.report(
        "launcher-sees-one-gpu", step.line,
        device + " leaves this " + name +
            " the GPU of the task's local number, which is 0 for a single task, and all ranks that it starts "
            "share that GPU; omit the variable: " +
            name + " gives each rank its own");
  }
}

/// The components that --het-group names; nullopt if they are not certain.
std::optional<std::set<std::int64_t>> components_of(const ScriptStep& step) {
  const SlurmOption* option = find_option(step.options, "--het-group");
  if (option == nullptr) option = find_option(step.options, "--pack-group");
  if (option == nullptr) return std::set<std::int64_t>{0};
  std::set<std::int64_t> components;
  for (const std::string_view part : split(option->value, ',')) {
    const auto first = parse_integer(part.substr(0, part.find('-')));
    const auto last =
        parse_integer(part.substr(part.find('-') == std::string_view::npos ? 0 : part.find('-') + 1));
    constexpr std::int64_t kMaxComponents = 1024;
    if (!first || !last || *first < 0 || *last > kMaxComponents) return std::nullopt;
    for (std::int64_t one = *first; one <= *last; ++one) components.insert(one);
  }
  return components;
}

void check_components(LintContext& context) {
  const ScriptText& script = context.script();
  if (!script.is_heterogeneous() || script.steps.empty()) return;
  for (const ShellCommand& command : script.commands) {
    const std::vector<std::string> texts = texts_of(command.words);
    const Words words = without_prefixes(texts);
    if (!words.empty() && (is_mpirun(words.front()) || file_name_of(words.front()) == "ddlrun")) return;
  }
  std::set<std::int64_t> used;
  for (const ScriptStep& step : script.steps) {
    const auto components = components_of(step);
    const bool has_several = std::find(step.program.begin(), step.program.end(), ":") != step.program.end();
    if (!components || has_several || !has_all_options(step)) return;
    used.insert(components->begin(), components->end());
  }
  for (int component = 0; component < script.components; ++component) {
    if (used.contains(component)) continue;
    context.report("het-group-unused", script.steps.front().line,
                   "the job has " + counted(script.components, "component") + ", and no srun uses number " +
                       std::to_string(component) +
                       ": without --het-group it uses only component 0; write srun --het-group=0-" +
                       std::to_string(script.components - 1) + ", or separate the parts by :");
    return;
  }
}

/// A $ that the shell of -c does not replace, because a backslash is in front of it. Other programs and shells inside
/// have backslashes of their own.
bool has_needless_backslash(std::string_view text) {
  constexpr std::array<std::string_view, 9> kOthers = {"awk",   "sed",    "grep", "perl", "ssh",
                                                       "sh -c", "python", "<<",   "eval"};
  if (std::any_of(kOthers.begin(), kOthers.end(),
                  [&](std::string_view one) { return text.find(one) != std::string_view::npos; }))
    return false;
  for (std::size_t at = text.find("\\$"); at != std::string_view::npos; at = text.find("\\$", at + 1)) {
    const std::string_view behind = text.substr(at + 2);
    const std::string_view name = behind.substr(behind.starts_with('{') ? 1 : 0);
    if (name.starts_with("SLURM_") || name.starts_with("PMI") || name.starts_with("OMPI_")) return true;
  }
  return false;
}

/// In a file from a here-document whose word is quoted: NAME=\$SLURM_LOCALID.
bool is_literal_task_variable(std::string_view text, const std::vector<std::string>& expands) {
  const std::size_t equals = text.find('=');
  const std::string_view value = text.substr(equals == std::string_view::npos ? 0 : equals + 1);
  if (!value.starts_with('$') || !expands.empty()) return false;
  const std::string_view name = value.substr(value.starts_with("${") ? 2 : 1);
  return is_task_variable(name.substr(0, name.find('}')));
}

void check_backslashes(LintContext& context) {
  constexpr std::string_view kWhy =
      "in '...' and in a here-document whose word is quoted $ needs no backslash, and with it the rank's "
      "shell takes the "
      "variable's name for a text; remove the backslash";
  for (const ShellCommand& command : context.script().commands) {
    const std::vector<std::string> texts = texts_of(command.words);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (!is_shell(texts[i])) continue;
      if (has_needless_backslash(text_for_shell(Words(texts).subspan(i))))
        context.report("backslash-in-quotes", command.line, std::string(kWhy));
      break;
    }
  }
  for (const ShellCommand& command : context.script().written_commands) {
    const bool has_word = std::any_of(command.words.begin(), command.words.end(), [](const ShellWord& word) {
      return word.text.find('=') != std::string::npos && is_literal_task_variable(word.text, word.expands);
    });
    const bool has_value = std::any_of(
        command.assignments.begin(), command.assignments.end(),
        [](const ShellAssignment& one) { return is_literal_task_variable(one.value, one.expands); });
    if (has_word || has_value) context.report("backslash-in-quotes", command.line, std::string(kWhy));
  }
}

}  // namespace

void check_launchers(LintContext& context) {
  check_on_one_node(context);
  check_in_steps(context);
  check_components(context);
  check_backslashes(context);
}

}  // namespace ddl::templates
