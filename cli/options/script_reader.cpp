// Reads the options of --slurm, --lint, --list-sites, --show-site and --explain.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/text.h"
#include "cli/options/option_values.h"
#include "cli/options/other_launchers.h"
#include "cli/options/readers.h"
#include "cli/options/script_values.h"
#include "templates/cluster/slurm_values.h"
#include "templates/lint/slurm_options.h"
#include "templates/lint/started_programs.h"

namespace ddl::cli {

namespace {

using templates::ScriptLauncher;
using templates::ScriptRequest;

constexpr int kMaxCpusPerTask = 1 << 14;

class ScriptReader {
 public:
  ScriptReader(Request& request, ValueReader& values)
      : request_(request), given_(values.given()), values_(values) {}

  Status read() {
    for (const OptionEntry& entry : option_table()) {
      if ((entry.rules & kNotInScript) != 0 && has(entry.id))
        values_.refuse_once(entry.id, display_name(entry) + " cannot be used in a job script",
                            "omit it: Slurm chooses the hosts, and the script runs later");
    }
    ScriptTask& task = request_.script;
    take_text(OptionId::kSite, request_.site);
    take_text(OptionId::kTemplate, task.template_file);
    take_text(OptionId::kScriptFile, task.script_file);
    task.overwrites = has(OptionId::kForce);
    task.submits = has(OptionId::kSubmit);
    task.tests_only = has(OptionId::kTestOnly);
    values_.exclude(OptionId::kSubmit, OptionId::kTestOnly);
    if (has(OptionId::kForce) && !has(OptionId::kScriptFile))
      values_.refuse_once("--force belongs to -o", "name the file with -o FILE");
    refuse_letters_of_sbatch();
    read_size();
    read_directives();
    read_setup();
    read_launch();
    DDL_TRY(values_.status());
    if (given_.is_typed(OptionId::kJson) && !task.submits)
      return refuse("--json with --slurm belongs to --submit: a script is not JSON",
                    "omit it, or add --submit");
    return {};
  }

 private:
  ScriptRequest& script() { return request_.script.request; }
  const launcher::JobSpec& job() const { return request_.job; }
  bool has(OptionId id) const { return given_.has(id); }
  void take_text(OptionId id, std::string& target) { values_.take(id, parse_line, target); }
  /// An option of sbatch with the same name.
  void take_slurm(OptionId id, std::string& target) {
    values_.take(id, parse_slurm_value, target, canonical_spelling(entry_of(id)));
  }
  void take_options(OptionId id, std::vector<std::string>& target) {
    for (const GivenValue& value : given_[id])
      target.push_back(values_.value_of(id, value, parse_option(value.text)));
  }
  void take_list(OptionId id, std::vector<std::string>& target) {
    for (const GivenValue& value : given_[id])
      target.push_back(values_.value_of(id, value, parse_line(value.text)));
  }

  /// -o and -x are letters of ddlrun, and their values show where sbatch's are meant.
  void refuse_letters_of_sbatch() {
    for (const GivenValue& value : given_[OptionId::kScriptFile]) {
      if (value.text.find('%') != std::string::npos || value.text.ends_with(".out") ||
          value.text.ends_with(".log"))
        values_.refuse_once(OptionId::kScriptFile,
                            value.name + " names the file of the script, and " + value.text +
                                " looks like that of the job's output",
                            "for sbatch's -o write --output " + value.text);
    }
    for (const GivenValue& value : given_[OptionId::kExport]) {
      if (value.text.find('=') == std::string::npos && value.text.find('[') != std::string::npos)
        values_.refuse_once(OptionId::kExport,
                            "-x passes on a variable, and " + value.text + " looks like names of nodes",
                            "for sbatch's -x write --exclude " + value.text);
    }
  }

  void read_size() {
    script().num_ranks = job().num_ranks;
    script().ranks_per_node = job().ranks_per_node;
    if (job().elastic.spares > 0) {
      int most = 0;
      values_.take(OptionId::kMaxNp, parse_rank_count, most);
      if (script().num_ranks == 0) script().num_ranks = most;
      script().num_processes = most + job().elastic.spares;
    }
    std::pair<int, int> nodes;
    values_.take(OptionId::kNodes, parse_node_range, nodes);
    std::tie(script().nodes, script().max_nodes) = nodes;
    if (has(OptionId::kGpusPerNode)) {
      GpuCount gpus;
      values_.take(OptionId::kGpusPerNode, parse_gpu_count, gpus);
      script().gpus_per_node = gpus.count;
      script().gpu_type = gpus.type;
    }
    values_.take(OptionId::kCpusPerTask, parse_count, script().cpus_per_task, 1, kMaxCpusPerTask);
    values_.exclude(OptionId::kCpusPerTask, OptionId::kCoresPerRank);
    take_slurm(OptionId::kMem, script().memory);
    take_slurm(OptionId::kMemPerCpu, script().memory_per_cpu);
    take_slurm(OptionId::kMemPerGpu, script().memory_per_gpu);
    values_.exclude(OptionId::kMem, OptionId::kMemPerCpu);
    values_.exclude(OptionId::kMem, OptionId::kMemPerGpu);
    values_.exclude(OptionId::kMemPerCpu, OptionId::kMemPerGpu);
    values_.take(OptionId::kTime, parse_time_limit, script().time_limit);
    script().exclusive = has(OptionId::kExclusive);
  }

  void read_directives() {
    take_text(OptionId::kJobName, script().job_name);
    take_slurm(OptionId::kAccount, script().account);
    take_slurm(OptionId::kPartition, script().partition);
    take_slurm(OptionId::kQos, script().qos);
    take_text(OptionId::kConstraint, script().constraint);
    take_slurm(OptionId::kDependency, script().dependency);
    take_slurm(OptionId::kArray, script().array);
    script().no_kill = request_.job.elastic.mode != launcher::ElasticMode::kOff;
    script().requeue = has(OptionId::kRequeue);
    constexpr int kMaxCode = 255;
    values_.take(OptionId::kRequeueOn, parse_count, script().requeue_on, 1, kMaxCode);
    script().requeue = script().requeue || script().requeue_on > 0;
    take_slurm(OptionId::kSignal, script().signal);
    complete_signal();
    take_text(OptionId::kOutput, script().output);
    take_text(OptionId::kError, script().error);
    take_slurm(OptionId::kMailUser, script().mail_user);
    take_slurm(OptionId::kMailType, script().mail_type);
    take_options(OptionId::kSbatch, script().directives);
    take_nodes_of_directives();
    for (const std::string& one : script().directives) {
      if (has(OptionId::kSubmit) && (one == "--wait" || one == "-W"))
        values_.refuse_once("--submit does not wait for the job, but --sbatch=" + one + " would",
                            "write the script with -o FILE, then: sbatch --wait FILE");
    }
  }

  /// The nodes that --sbatch names are the request's, as by their own options, and choose the site's profile.
  void take_nodes_of_directives() {
    std::erase_if(script().directives, [this](const std::string& directive) {
      const auto words = templates::split_directive(directive);
      const auto read = templates::read_slurm_options(words, templates::SlurmProgram::kSbatch, 0);
      bool are_all = read.used == words.size() && !read.options.empty();
      for (const templates::SlurmOption& option : read.options) {
        std::string* const target = option.name == "--partition"    ? &script().partition
                                    : option.name == "--constraint" ? &script().constraint
                                    : option.name == "--qos"        ? &script().qos
                                                                    : nullptr;
        are_all = are_all && target != nullptr && !option.value.empty();
        if (target != nullptr && !option.value.empty()) *target = option.value;
      }
      return are_all;
    });
  }

  /// Before the time limit Slurm tells ddlrun, which has the state saved. A job that starts again goes on from there.
  void complete_signal() {
    const std::string& given = script().signal;
    const std::string_view signal = templates::signal_of(given);
    const bool is_shells = !templates::shells_signal(given).empty();
    const bool is_termination = signal == "TERM" || signal == "15";
    if (is_shells && is_termination && script().requeue_on > 0)
      values_.refuse_once(
          OptionId::kSignal,
          "--signal " + given + " is what scancel sends, so --requeue-on would start a cancelled job again",
          "use --signal B:USR1@120");
    if (job().elastic.state_directory.empty()) return;
    script().requeue = true;
    if (!given.empty() && !is_shells && (is_termination || signal == "USR1" || signal == "10"))
      values_.refuse_once(
          OptionId::kSignal,
          "with --state-dir ddlrun has to get the signal, and --signal " + given + " goes to the ranks",
          "use --signal B:" + given);
    if (given.empty()) script().signal = "B:USR1@120";
  }

  void read_setup() {
    take_list(OptionId::kBeforeModules, script().lines_before_modules);
    take_list(OptionId::kModule, script().modules);
    take_text(OptionId::kEasybuildPrefix, script().easybuild_prefix);
    take_text(OptionId::kEessi, script().eessi_version);
    take_text(OptionId::kConda, script().conda);
    take_text(OptionId::kVenv, script().venv);
    take_list(OptionId::kSetup, script().setup_lines);
    take_list(OptionId::kAfter, script().lines_after);
    for (const std::string& line : script().setup_lines) refuse_traps(line);
    take_text(OptionId::kContainer, script().container.image);
    values_.take(OptionId::kContainerRuntime, parse_container_runtime, script().container.runtime);
    take_list(OptionId::kContainerBind, script().container.binds);
    take_options(OptionId::kContainerOption, script().container.options);
    if (!has(OptionId::kContainer))
      values_.refuse_given(
          {OptionId::kContainerRuntime, OptionId::kContainerBind, OptionId::kContainerOption},
          " belongs to --container", usage_line(entry_of(OptionId::kContainer)));
  }

  /// While the script waits for the ranks it has traps of its own, and any other signal that is caught would end the
  /// wait. A trap for the exit is right.
  void refuse_traps(const std::string& line) {
    for (const templates::ShellCommand& command : templates::read_shell(line).commands)
      refuse_trap(templates::texts_of(command.words));
  }
  void refuse_trap(const std::vector<std::string>& command) {
    templates::Words words = templates::without_prefixes(command);
    if (words.empty() || words.front() != "trap") return;
    words = words.subspan(words.size() > 1 && words[1] == "--" ? 2 : 1);
    if (words.size() < 2) return;
    const std::string& action = words.front();
    if (action.empty() || action.front() == '-') return;  // back to the default, or -p, which prints
    const auto caught = std::find_if(words.begin() + 1, words.end(), [](const std::string& signal) {
      return signal != "EXIT" && signal != "0" && signal != "ERR" && signal != "DEBUG";
    });
    if (caught != words.end())
      values_.refuse_once(
          OptionId::kSetup, "--setup: a trap for " + *caught + " would end the script while its ranks run",
          "what is to run after the ranks: --after LINE; a signal for the ranks: --signal B:USR1@120");
  }

  void read_launch() {
    script().command = job().command;
    script().binding = job().binding;
    script().has_rank_order = has(OptionId::kRankOrder);
    script().starts_own_ranks = starts_own_ranks(job().command);
    script().expands_command = has(OptionId::kExpand);
    if (!script().expands_command) note_variables();
    values_.take(OptionId::kGpuChoice, parse_gpu_choice, script().gpu_choice);
    values_.take(OptionId::kGpuVendor, parse_gpu_vendor, script().gpu_vendor);
    take_text(OptionId::kMpiType, script().mpi_type);
    if (job().launcher == launcher::LauncherChoice::kSrun) return read_srun();
    values_.refuse_given({OptionId::kGpuChoice, OptionId::kMpiType}, " belongs to --launcher srun",
                         "add --launcher srun, or omit it: ddlrun does this itself");
    values_.refuse_given({OptionId::kSrunOption}, " belongs to --launcher srun",
                         "omit it, or start the ranks with --launcher srun");
    const bool by_mpirun = job().launcher == launcher::LauncherChoice::kMpirun;
    if (job().launcher != launcher::LauncherChoice::kAuto && !by_mpirun)
      values_.refuse_once(
          OptionId::kLauncher,
          "--launcher " + given_[OptionId::kLauncher].front().text + " cannot be used in a job script",
          "omit it, or --launcher srun where ddlrun is not installed");
    script().ddlrun = job().ssh.remote_path;
    script().has_sizes = has(OptionId::kScaling);
    if (by_mpirun && !has(OptionId::kMpi)) script().ddlrun_options.push_back({"--launcher", "mpirun"});
    for (const OptionEntry& entry : option_table()) {
      if ((entry.rules & kForScript) == 0) continue;
      for (const GivenValue& value : given_[entry.id]) {
        auto& words = script().ddlrun_options.emplace_back();
        words.emplace_back(canonical_spelling(entry));
        if (entry.takes_value()) words.push_back(value.text);
      }
    }
  }

  void read_srun() {
    script().launcher = ScriptLauncher::kSrun;
    values_.check(refuse_beyond_srun(given_, OptionId::kFramework));
    read_framework_of_srun();
    take_options(OptionId::kSrunOption, script().srun_options);
    values_.refuse_given({OptionId::kMapBy, OptionId::kOversubscribe, OptionId::kStdin, OptionId::kAsHorovod},
                         " cannot be used in a script with --launcher srun",
                         "omit it, or omit --launcher srun");
    for (const launcher::EnvironmentExport& one : job().exports) {
      // Without a value there is nothing to write: sbatch passes on the submitter's variable.
      if (one.value) script().variables.push_back({one.name, *one.value});
    }
    if (has(OptionId::kWorkdir)) script().srun_options.push_back("--chdir=" + job().workdir);
    if (has(OptionId::kTagOutput)) script().srun_options.emplace_back("--label");
  }

  /// JAX finds the ranks of a step of Slurm by itself, and so does an MPI.
  void read_framework_of_srun() {
    using launcher::Framework;
    const Framework framework = job().framework;
    script().torch_variables = framework == Framework::kTorch || framework == Framework::kDeepspeed;
    if (framework == Framework::kTensorflow || framework == Framework::kHorovod ||
        framework == Framework::kMxnet)
      values_.refuse_once(OptionId::kFramework,
                          "--framework " + given_[OptionId::kFramework].back().text +
                              " needs ddlrun's agents, and srun runs without them",
                          "omit it, or omit --launcher srun");
    const std::string_view program =
        job().command.empty() ? std::string_view() : std::string_view(job().command.front());
    if (framework == Framework::kAuto && program.substr(program.rfind('/') + 1).starts_with("python"))
      request_.notes.emplace_back(
          "ranks that srun starts get no variables of a framework: --framework torch adds MASTER_ADDR, RANK "
          "and the "
          "others of PyTorch");
  }

  /// Variables of a job array and arguments of the script have no value before the job runs. A shell as the command
  /// has its own use of them.
  void note_variables() {
    const auto& command = job().command;
    if (std::find(command.begin(), command.end(), "-c") != command.end()) return;
    const auto found = std::find_if(command.begin(), command.end(), [](const std::string& word) {
      return word == "$@" || word == "$1" || word.find("$SLURM_") != std::string::npos ||
             word.find("${SLURM_") != std::string::npos;
    });
    if (found != command.end())
      request_.notes.push_back("the program gets " + in_quotes(*found) +
                               " as it is; with --expand the script replaces what $ begins");
  }

  Request& request_;
  const GivenOptions& given_;
  ValueReader& values_;
};

/// "tag,timestamp,dir=logs,merge": of mpirun 5.
bool is_output_of_mpirun(std::string_view text) {
  const auto words = split(text, ',');
  return std::all_of(words.begin(), words.end(), [](std::string_view word) {
    for (const std::string_view known :
         {"tag", "tag-detailed", "tag-fullname", "rank", "timestamp", "xml", "merge"}) {
      if (word == known) return true;
    }
    return word.starts_with("dir=") || word.starts_with("file=");
  });
}

}  // namespace

Status refuse_script_options(const GivenOptions& given) {
  for (const OptionEntry& entry : option_table()) {
    if (entry.group != OptionGroup::kScripts || !given.has(entry.id)) continue;
    const bool is_of_srun = entry.id == OptionId::kMpiType || entry.id == OptionId::kSrunOption;
    const bool has_launcher = given.has(OptionId::kLauncher);
    if (is_of_srun && has_launcher && given[OptionId::kLauncher].back().text == "srun") continue;
    if (!given.is_typed(entry.id) && !(is_of_srun && has_launcher)) continue;
    if (is_of_srun) {
      return refuse(display_name(entry) + " belongs to --launcher srun",
                    entry.id == OptionId::kMpiType ? "omit it: ddlrun serves every type of MPI itself"
                                                   : "omit it, or start the ranks with --launcher srun");
    }
    const std::string& value = given[entry.id].back().text;
    if (entry.id == OptionId::kOutput && is_output_of_mpirun(value)) {
      return refuse("--output " + value + " is mpirun's",
                    "use --tag-output, --prefix-output-with-timestamp, --output-filename DIR, "
                    "--merge-stderr-to-stdout");
    }
    if (entry.id == OptionId::kCpusPerTask)
      return refuse(display_name(entry) + " belongs to --slurm, which writes a job script",
                    "use --cores-per-rank N, and --smt for all hardware threads of these cores");
    const bool is_output = entry.id == OptionId::kOutput || entry.id == OptionId::kError ||
                           entry.id == OptionId::kScriptFile;  // srun's -o
    return refuse(
        display_name(entry) + " belongs to --slurm, which writes a job script",
        is_output ? "the ranks' output goes to files with --output-filename DIR" : "add --slurm, or omit it");
  }
  return {};
}

Status read_script(Request& request, const CommandLine& line) {
  ValueReader values(line.given);
  // Both read their values, so that all wrong ones are known.
  const Status job = read_job_by(values, request, line);
  const Status script = ScriptReader(request, values).read();
  MetricsTask checked;  // they stay words of the script
  read_metrics_of_job(values, line.context.current_directory, checked);
  if (job && script) return {};
  const auto& wrong = line.given.wrong;
  const Status all = values.status();
  const bool has_line =
      values.num_errors() == wrong.size() && !wrong.empty() &&
      std::all_of(wrong.begin(), wrong.end(), [](const WrongOption& one) { return !one.instead.empty(); });
  if (has_line)
    return fail(all.error().with_hint(all.error().hint() + " type " + corrected_line(line.split)));
  return all ? (job ? script : job) : all;
}

Status read_job_here(Request& request, const CommandLine& line) {
  DDL_TRY(refuse_script_options(line.given));
  DDL_TRY(read_job(request, line));
  return read_report_files(request, line);
}

Status read_lint(Request& request, const CommandLine& line) {
  ValueReader values(line.given);
  values.take(OptionId::kLint, parse_line, request.script.lint_file);
  values.take(OptionId::kSite, parse_line, request.site);
  values.take(OptionId::kShowSite, parse_line, request.site);
  values.exclude(OptionId::kShowSite, OptionId::kSite);
  if (line.given.has(OptionId::kExplain) && !line.given.has(OptionId::kSite))
    values.refuse_once("--explain belongs to --site", "name the site: --site lumi --explain");
  return values.status();
}

}  // namespace ddl::cli
