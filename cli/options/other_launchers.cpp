#include "cli/options/other_launchers.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "templates/lint/started_programs.h"

namespace ddl::cli {

namespace {

using Words = std::vector<std::string>;

/// How a launcher's command line is read.
enum class LauncherForm {
  kPython,   ///< options, then a Python script or module
  kProgram,  ///< options as ddlrun has them, then a program
  kSrun,     ///< the same, with letters of Slurm
  kNoLine,   ///< no line of ddlrun is given in its place
};

struct LauncherEntry {
  std::string_view name;
  std::string_view module;  ///< of Python, by which it can be started, too
  LauncherForm form;
  std::string_view flags;  ///< for kPython: options without a value, with "-" for "_"
  std::string_view why = "is a launcher itself, and ddlrun takes its place";
  std::string_view instead = {};  ///< for kNoLine
};

constexpr std::string_view kTorchFlags = "--standalone,--no-python,-m,--module,--run-path,--use-env";

constexpr LauncherEntry kLaunchers[] = {
    {"torchrun", "torch.distributed.run", LauncherForm::kPython, kTorchFlags},
    {"torchrun", "torch.distributed.launch", LauncherForm::kPython, kTorchFlags},
    {"accelerate", "accelerate.commands.launch", LauncherForm::kPython,
     "--multi-gpu,--cpu,--tpu,--use-deepspeed,--use-fsdp,--use-megatron-lm,--use-xpu,--use-mps-device,-q,--"
     "quiet,"
     "--debug,-m,--module,--no-python,--same-network,--tpu-use-cluster,--ipex"},
    {"deepspeed", "deepspeed.launcher.runner", LauncherForm::kPython,
     "--no-python,--module,--no-local-rank,--force-multi,--no-ssh,--no-ssh-check,--elastic-training,"
     "--bind-cores-to-rank"},
    {"horovodrun", "horovod.runner", LauncherForm::kProgram, ""},
    {"mpirun", "", LauncherForm::kProgram, ""},
    {"mpiexec", "", LauncherForm::kProgram, ""},
    {"mpiexec.hydra", "", LauncherForm::kProgram, ""},
    {"orterun", "", LauncherForm::kProgram, ""},
    {"prterun", "", LauncherForm::kProgram, ""},
    {"aprun", "", LauncherForm::kProgram, ""},
    {"jsrun", "", LauncherForm::kNoLine, "", "is a launcher itself, and ddlrun takes its place",
     "omit it and its options: in a job of LSF ddlrun finds the hosts and their slots"},
    {"srun", "", LauncherForm::kSrun, ""},
    {"sbatch", "", LauncherForm::kNoLine, "", "submits a script, and ddlrun starts programs",
     "type sbatch SCRIPT without ddlrun, which stands in the script; ddlrun --slurm -np N PROGRAM writes "
     "one"},
    {"salloc", "", LauncherForm::kNoLine, "", "asks for the nodes on which ddlrun then starts ranks",
     "write it first: salloc OPTIONS ddlrun PROGRAM"},
};

/// The launcher, and how many words name it.
struct NamedLauncher {
  const LauncherEntry* entry = nullptr;
  std::size_t words = 0;
};

NamedLauncher find_launcher(const Words& command) {
  if (command.empty()) return {};
  const std::string_view name = std::string_view(command[0]).substr(command[0].rfind('/') + 1);
  const templates::Words module = templates::module_of_python(command);
  const auto* found =
      std::find_if(std::begin(kLaunchers), std::end(kLaunchers), [&](const LauncherEntry& one) {
        return module.empty() ? one.name == name : one.module == module.front();
      });
  if (found == std::end(kLaunchers)) return {};
  if (!module.empty()) return {found, command.size() - module.size() + 1};
  // "accelerate config" and the like start nothing.
  if (found->name != "accelerate") return {found, 1};
  return command.size() > 1 && command[1] == "launch" ? NamedLauncher{found, 2} : NamedLauncher{};
}

bool is_count(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string with_hyphens(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// A Python launcher's options, and the Python that it starts.
void read_python(const LauncherEntry& entry, const Words& words, OtherLauncher& launcher) {
  const auto flags = split(entry.flags, ',');
  bool is_module = false, is_program = false;
  std::size_t next = 0;
  for (; next < words.size() && words[next].starts_with('-'); ++next) {
    const std::size_t equals = words[next].find('=');
    const std::string name = with_hyphens(words[next].substr(0, equals));
    is_module = is_module || name == "-m" || name == "--module";
    is_program = is_program || name == "--no-python";
    if (std::find(flags.begin(), flags.end(), name) != flags.end()) continue;
    const std::string value = equals != std::string::npos ? words[next].substr(equals + 1)
                              : next + 1 < words.size()   ? words[++next]
                                                          : "";
    if (!is_count(value)) continue;
    if (name == "--nproc-per-node" || name == "--num-gpus") launcher.ranks_per_node = value;
    if (name == "--num-processes") launcher.ranks = value;
    if (name == "--nnodes" || name == "--num-nodes" || name == "--num-machines") launcher.nodes = value;
  }
  if (next >= words.size()) return;
  if (!is_program) launcher.program.emplace_back("python3");
  if (is_module) launcher.program.emplace_back("-m");
  launcher.program.insert(launcher.program.end(), words.begin() + next, words.end());
}

/// A launcher's options that ddlrun has; the others have no place in its line.
void read_program(SplitArgv words, OtherLauncher& launcher) {
  launcher.program = std::move(words.command);
  for (TypedOption& option : words.options) {
    const OptionEntry* entry = option.entry;
    if (entry == nullptr || !entry->is_available() || (entry->takes_value() && !option.value)) continue;
    switch (entry->id) {
      case OptionId::kNumProc: launcher.ranks = *option.value; break;
      case OptionId::kRanksPerNode: launcher.ranks_per_node = *option.value; break;
      case OptionId::kNodes:
      case OptionId::kNnodes: launcher.nodes = *option.value; break;
      default: launcher.others.options.push_back(std::move(option));
    }
  }
}

bool is_one(const GivenOptions& given, OptionId id) { return given.has(id) && given[id].back().text == "1"; }

/// As many ranks as nodes.
bool is_one_on_each_node(const GivenOptions& given) {
  const OptionId nodes = given.has(OptionId::kSlurm) ? OptionId::kNodes : OptionId::kNnodes;
  return is_one(given, OptionId::kRanksPerNode) ||
         (given.has(OptionId::kNumProc) && given.has(nodes) &&
          given[OptionId::kNumProc].back().text == given[nodes].back().text);
}

/// The user's line with the launcher's numbers in ddlrun's options, where the user gave none, and its program.
std::string line_instead(const SplitArgv& typed, const GivenOptions& given, const OtherLauncher& launcher) {
  SplitArgv line = typed;
  const auto add = [&](OptionId id, const std::string& value) {
    const OptionEntry& entry = entry_of(id);
    if (!value.empty() && !given.has(id))
      line.options.push_back({&entry, std::string(split(entry.spellings, ',').front()), value});
  };
  const bool is_script = given.has(OptionId::kSlurm);
  add(OptionId::kNumProc, launcher.ranks);
  add(OptionId::kRanksPerNode, launcher.ranks_per_node);
  if (is_script || launcher.nodes != "1")
    add(is_script ? OptionId::kNodes : OptionId::kNnodes, launcher.nodes);
  for (const TypedOption& option : launcher.others.options) {
    const bool fits =
        is_script ? (option.entry->rules & kNotInScript) == 0 : option.entry->group != OptionGroup::kScripts;
    if (fits && !given.has(option.entry->id)) line.options.push_back(option);
  }
  const bool has_ranks = given.has(OptionId::kNumProc) || given.has(OptionId::kRanksPerNode);
  if (!has_ranks && launcher.ranks.empty() && launcher.ranks_per_node.empty()) add(OptionId::kNumProc, "N");
  line.command = launcher.program;
  return corrected_line(line);
}

}  // namespace

std::optional<OtherLauncher> other_launcher(const Words& command) {
  const auto [entry, words] = find_launcher(command);
  if (entry == nullptr) return std::nullopt;
  OtherLauncher launcher;
  launcher.name = entry->name;
  launcher.starts_ranks_of_node = entry->form == LauncherForm::kPython;
  const Words rest(command.begin() + static_cast<std::ptrdiff_t>(words), command.end());
  switch (entry->form) {
    case LauncherForm::kPython: read_python(*entry, rest, launcher); break;
    case LauncherForm::kProgram: read_program(split_argv(rest), launcher); break;
    case LauncherForm::kSrun: read_program(split_srun(rest), launcher); break;
    case LauncherForm::kNoLine: break;
  }
  return launcher;
}

bool starts_own_ranks(const Words& command) {
  const LauncherEntry* entry = find_launcher(command).entry;
  return entry != nullptr && entry->form == LauncherForm::kPython;
}

Status refuse_launcher(const SplitArgv& split, const GivenOptions& given) {
  const LauncherEntry* entry = find_launcher(split.command).entry;
  if (entry == nullptr) return {};
  if (is_one(given, OptionId::kNumProc)) return {};
  const auto launcher = *other_launcher(split.command);
  if (launcher.starts_ranks_of_node && is_one_on_each_node(given)) return {};
  std::string sentence = std::string(entry->name) + " " + std::string(entry->why);
  if (entry->form == LauncherForm::kNoLine) return refuse(std::move(sentence), std::string(entry->instead));
  std::string hint = launcher.program.empty()
                         ? "omit it, and write the program: ddlrun -np N PROGRAM ARGUMENTS..."
                         : "type " + line_instead(split, given, launcher);
  if (launcher.starts_ranks_of_node)
    hint += "; or, to have one " + std::string(entry->name) + " on each node: --ranks-per-node 1";
  return refuse(std::move(sentence), std::move(hint));
}

}  // namespace ddl::cli
