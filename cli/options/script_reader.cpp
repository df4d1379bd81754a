// Reads the options of --slurm, --lint, --list-sites, --show-site and --explain.
#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/options/option_values.h"
#include "cli/options/readers.h"
#include "templates/cluster/slurm_values.h"

namespace ddl::cli {

namespace {

using templates::ScriptLauncher;
using templates::ScriptRequest;

constexpr int kMaxNodes = 1 << 20;

Result<std::string> one_line(const std::string& text) {
  if (text.find_first_of("\r\n") != std::string::npos) return refuse("its value has several lines");
  return not_empty(text);
}

Result<std::string> container_runtime(const std::string& text) {
  return one_of<std::string>(text, {{"apptainer", "apptainer"}, {"singularity", "singularity"}});
}

Result<templates::GpuChoice> gpu_choice(const std::string& text) {
  using enum templates::GpuChoice;
  return one_of<templates::GpuChoice>(text, {{"visible-devices", kVisibleDevices}, {"gpu-bind", kGpuBind}});
}

Result<affinity::GpuVendor> gpu_vendor(const std::string& text) {
  using enum affinity::GpuVendor;
  return one_of<affinity::GpuVendor>(
      text, {{name_of(kNvidia), kNvidia}, {name_of(kAmd), kAmd}, {name_of(kIntel), kIntel}});
}

Result<std::string> directive(const std::string& text) {
  auto line = one_line(text);
  if (line && !line->starts_with("-"))
    return refuse("'" + text + "' is not an option, as in --sbatch=--licenses=x");
  return line;
}

Result<std::string> time_limit(const std::string& text) {
  if (templates::slurm_minutes(text) || text == "UNLIMITED") return text;
  return refuse("'" + text + "' is not a time limit of Slurm: minutes, 30:00, 2:00:00, 1-12 or 1-12:00:00");
}

/// A parser of values that sbatch would refuse.
auto slurm_value(std::string_view option) {
  return [option](const std::string& text) -> Result<std::string> {
    DDL_ASSIGN(line, one_line(text));
    if (const std::string wrong = templates::wrong_slurm_value(option, text); !wrong.empty())
      return refuse(wrong);
    return line;
  };
}

class ScriptReader {
 public:
  ScriptReader(Request& request, const GivenOptions& given)
      : request_(request), given_(given), values_(given) {}

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
  void take_text(OptionId id, std::string& target) { values_.take(id, one_line, target); }
  /// An option of sbatch with the same name.
  void take_slurm(OptionId id, std::string& target) {
    values_.take(id, slurm_value(canonical_spelling(entry_of(id))), target);
  }
  void take_list(OptionId id, std::vector<std::string>& target) {
    for (const GivenValue& value : given_[id])
      target.push_back(values_.value_of(id, value, one_line(value.text)));
  }

  void read_size() {
    script().num_ranks = job().num_ranks;
    script().ranks_per_node = job().ranks_per_node;
    values_.take(OptionId::kNodes, parse_count, script().nodes, 1, kMaxNodes);
    values_.take(OptionId::kGpusPerNode, parse_count, script().gpus_per_node, 0, kMaxGpus);
    take_slurm(OptionId::kMem, script().memory);
    take_slurm(OptionId::kMemPerCpu, script().memory_per_cpu);
    take_slurm(OptionId::kMemPerGpu, script().memory_per_gpu);
    values_.exclude(OptionId::kMem, OptionId::kMemPerCpu);
    values_.exclude(OptionId::kMem, OptionId::kMemPerGpu);
    values_.exclude(OptionId::kMemPerCpu, OptionId::kMemPerGpu);
    values_.take(OptionId::kTime, time_limit, script().time_limit);
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
    for (const GivenValue& value : given_[OptionId::kSbatch])
      script().directives.push_back(values_.value_of(OptionId::kSbatch, value, directive(value.text)));
    for (const std::string& one : script().directives) {
      if (has(OptionId::kSubmit) && (one == "--wait" || one == "-W"))
        values_.refuse_once("--submit does not wait for the job, but --sbatch=" + one + " would",
                            "write the script with -o FILE, then: sbatch --wait FILE");
    }
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
    take_list(OptionId::kModule, script().modules);
    take_text(OptionId::kEasybuildPrefix, script().easybuild_prefix);
    take_text(OptionId::kEessi, script().eessi_version);
    take_text(OptionId::kConda, script().conda);
    take_text(OptionId::kVenv, script().venv);
    take_list(OptionId::kSetup, script().setup_lines);
    take_text(OptionId::kContainer, script().container);
    values_.take(OptionId::kContainerRuntime, container_runtime, script().container_runtime);
    take_list(OptionId::kContainerBind, script().container_binds);
    if (!has(OptionId::kContainer))
      values_.refuse_given({OptionId::kContainerRuntime, OptionId::kContainerBind}, " belongs to --container",
                           usage_line(entry_of(OptionId::kContainer)));
  }

  void read_launch() {
    script().command = job().command;
    script().binding = job().binding;
    script().has_rank_order = has(OptionId::kRankOrder);
    values_.take(OptionId::kGpuChoice, gpu_choice, script().gpu_choice);
    values_.take(OptionId::kGpuVendor, gpu_vendor, script().gpu_vendor);
    take_text(OptionId::kMpiType, script().mpi_type);
    if (job().launcher == launcher::LauncherChoice::kSrun) return read_srun();
    values_.refuse_given({OptionId::kGpuChoice, OptionId::kMpiType}, " belongs to --launcher srun",
                         "add --launcher srun, or omit it: ddlrun does this itself");
    if (job().launcher != launcher::LauncherChoice::kAuto) {
      const OptionId id = has(OptionId::kMpi) ? OptionId::kMpi : OptionId::kLauncher;
      const std::string value = has(OptionId::kMpi) ? "" : " " + given_[id].front().text;
      values_.refuse_once(id, std::string(entry_of(id).spellings) + value + " cannot be used in a job script",
                          "omit it, or --launcher srun where ddlrun is not installed");
    }
    script().ddlrun = job().ssh.remote_path;
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
    values_.check(refuse_beyond_srun(given_));
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

  Request& request_;
  const GivenOptions& given_;
  ValueReader values_;
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
    if (entry.id == OptionId::kMpiType && given.has(OptionId::kLauncher)) {
      if (given[OptionId::kLauncher].back().text == "srun") continue;
      return refuse(display_name(entry) + " belongs to --launcher srun",
                    "omit it: ddlrun serves every type of MPI itself");
    }
    if (!given.is_typed(entry.id)) continue;
    const std::string& value = given[entry.id].back().text;
    if (entry.id == OptionId::kOutput && is_output_of_mpirun(value)) {
      return refuse("--output " + value + " is mpirun's",
                    "use --tag-output, --prefix-output-with-timestamp, --output-filename DIR, "
                    "--merge-stderr-to-stdout");
    }
    const bool is_output = entry.id == OptionId::kOutput || entry.id == OptionId::kError ||
                           entry.id == OptionId::kScriptFile;  // srun's -o
    return refuse(
        display_name(entry) + " belongs to --slurm, which writes a job script",
        is_output ? "the ranks' output goes to files with --output-filename DIR" : "add --slurm, or omit it");
  }
  return {};
}

Status read_script(Request& request, const CommandLine& line) {
  DDL_TRY(read_job(request, line));
  return ScriptReader(request, line.given).read();
}

Status read_job_here(Request& request, const CommandLine& line) {
  DDL_TRY(refuse_script_options(line.given));
  return read_job(request, line);
}

Status read_lint(Request& request, const CommandLine& line) {
  ValueReader values(line.given);
  values.take(OptionId::kLint, one_line, request.script.lint_file);
  values.take(OptionId::kSite, one_line, request.site);
  values.take(OptionId::kShowSite, one_line, request.site);
  values.exclude(OptionId::kShowSite, OptionId::kSite);
  if (line.given.has(OptionId::kExplain) && !line.given.has(OptionId::kSite))
    values.refuse_once("--explain belongs to --site", "name the site: --site lumi --explain");
  return values.status();
}

}  // namespace ddl::cli
