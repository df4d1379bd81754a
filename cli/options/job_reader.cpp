// Reads the options of a job: ranks, hosts, launcher, input and output. Then it determines the job's hosts and its
// number of ranks.
#include <algorithm>
#include <limits>

#include "base/environment.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "cli/options/command_mistakes.h"
#include "cli/options/option_table.h"
#include "cli/options/option_values.h"
#include "cli/options/other_launchers.h"
#include "cli/options/readers.h"
#include "contract/environment.h"
#include "contract/event_ring.h"
#include "launcher/job/allocation.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"
#include "launcher/scheduler/find_allocation.h"
#include "templates/script/batch_job.h"

namespace ddl::cli {

namespace {

using launcher::JobSpec;

constexpr int kMaxParallel = 4096;
constexpr int kMaxFanOut = 4096;

/// The options of --launcher mpirun. Options that mpirun cannot honour are refused.
MpiTask read_mpi_task(const GivenOptions& given, ValueReader& values) {
  MpiTask task;
  task.choice = mpirun_choice(given);
  values.take(OptionId::kMpirun, not_empty, task.mpirun);
  values.take(OptionId::kMpiArgs, split_shell_words, task.options.mpi_args);
  values.take(OptionId::kBindingArgs, split_shell_words, task.options.binding_args);
  task.options.tcp_only = given.has(OptionId::kTcp);
  for (const OptionEntry& entry : option_table()) {
    if (!given.has(entry.id)) continue;
    if ((entry.rules & kNotWithMpirun) != 0)
      values.refuse_once(
          entry.id, display_name(entry) + " needs ddlrun's agents, and mpirun runs without them",
          entry.id == OptionId::kOutputFilename ? "omit it, or pass mpirun's own with --mpi-args"
                                                : "omit it, or omit " + task.choice);
    if ((entry.rules & kForMpiRank) == 0) continue;
    if (entry.group == OptionGroup::kBinding) values.exclude(OptionId::kBindingArgs, entry.id);
    for (const GivenValue& value : given[entry.id]) {
      task.rank_options.emplace_back(canonical_spelling(entry));
      if (entry.takes_value()) task.rank_options.push_back(value.text);
    }
  }
  if (!task.options.binding_args.empty())
    task.rank_options.insert(task.rank_options.end(), {"--bind-to", "none"});
  return task;
}

/// Turns the given options into a job.
class JobReader {
 public:
  JobReader(Request& request, ValueReader& values, const CommandLineContext& context)
      : request_(request), given_(values.given()), context_(context), values_(values) {}

  Status read(const std::vector<std::string>& command) {
    job().workdir = context_.current_directory;
    read_ranks();
    read_rankfile(values_, context_, job());
    read_binding(values_, job().binding);
    if (starts_own_ranks(command) && job().binding == affinity::BindingPolicy{})
      job().binding.bind_to = affinity::BindTo::kNone;
    job().binding.oversubscribe = job().oversubscribe;
    take(OptionId::kVisibleGpus, parse_gpu_view, job().gpu_view);
    job().report_bindings = has(OptionId::kReportBindings);
    job().strict_bind = has(OptionId::kStrictBind);
    read_hosts_and_launcher();
    read_input_output();
    const bool is_script = request_.action == Action::kScript;
    values_.refuse_given({OptionId::kFormat, OptionId::kTopology, OptionId::kTopologyText},
                         " belongs to --show-bind, --explain-bind and --show-topology",
                         "omit it: ddlrun asks each host of a job for its topology");
    const bool has_job = request_.action == Action::kRun || request_.action == Action::kDryRun || is_script;
    if (has_job) take(OptionId::kSite, not_empty, request_.site);
    request_.has_rank_order = has(OptionId::kRankOrder);
    request_.probes_hosts = has(OptionId::kProbe);
    if (request_.action != Action::kDryRun)
      values_.refuse_given({OptionId::kProbe}, " belongs to --dry-run",
                           "add --dry-run, or omit it: a job always asks its hosts");
    for (const auto& [one, other] : contradictions()) values_.exclude(one, other);
    check_scaling(values_, request_);
    DDL_TRY(values_.status());
    if (has_job) check_command(command);
    if (!is_script) {
      find_hosts();
      if (has_job) find_num_ranks(command);
      if (has_job) complete_elastic(values_, context_, request_.allocation, job());
      if (has_job) complete_roles(values_, job());
    }
    DDL_TRY(values_.status());
    if (has_job && job().name.empty()) job().name = templates::job_name_of(command);
    if (has_job) job().command = command;
    const int most_ranks = std::max(job().num_ranks, job().elastic.max_ranks);
    job().tag_output = has(OptionId::kTagOutput) || (most_ranks > 1 && !has(OptionId::kNoTagOutput));
    return {};
  }

 private:
  JobSpec& job() { return request_.job; }
  bool has(OptionId id) const { return given_.has(id); }

  // ---- options ----

  void read_ranks() {
    read_scaling(values_, request_);
    take(OptionId::kNumProc, parse_rank_count, job().num_ranks);
    take(OptionId::kJobName, not_empty, job().name);
    take(OptionId::kRanksPerNode, parse_ranks_per_node, job().ranks_per_node);
    read_map_by(values_, job());
    take(OptionId::kTimeout, parse_seconds, job().timeout_seconds, false);
    take(OptionId::kEndWith, parse_count, job().end_with_pid, 1, std::numeric_limits<int>::max());
    take(OptionId::kKillGrace, parse_seconds, job().kill_grace_seconds, true);
    read_stall_check();
    take(OptionId::kWorkdir, parse_directory, job().workdir, context_.current_directory);
    for (const GivenValue& value : given_[OptionId::kExport]) {
      job().exports.push_back(values_.value_of(OptionId::kExport, value, parse_export(value.text)));
    }
    // Options that stand for a variable of the ranks.
    const auto take_export = [this](OptionId id, auto parse) {
      if (!has(id)) return;
      const GivenValue& value = given_[id].back();
      job().exports.push_back(values_.value_of(id, value, parse(value.text)));
    };
    take_export(OptionId::kCpuOperations, parse_cpu_operations);
    take_export(OptionId::kGpuOperations, parse_gpu_operations);
    take_export(OptionId::kFusionThreshold, parse_fusion_threshold);
    take_export(OptionId::kGlooTimeout, parse_gloo_timeout);
    read_framework(values_, job());
    job().oversubscribe |= has(OptionId::kOversubscribe);
  }

  void read_stall_check() {
    take(OptionId::kStallWarning, parse_seconds, job().stall_warning_seconds, false);
    // As in horovodrun, 0 is the default: never.
    take(OptionId::kStallShutdown, parse_seconds, job().stall_shutdown_seconds, true);
    // Files of horovodrun give the times also where the check is off.
    if (has(OptionId::kNoStallCheck)) job().stall_warning_seconds = job().stall_shutdown_seconds = 0;
  }

  void read_hosts_and_launcher() {
    take(OptionId::kHosts, not_empty, job().hosts);
    if (has(OptionId::kHosts)) {
      const GivenValue& value = given_[OptionId::kHosts].front();
      job().hosts_given_by = value.where.empty() ? given_.typed_name(OptionId::kHosts) : value.where;
    }
    if (is_file_of_hosts(job().hosts))
      values_.refuse_once(given_.typed_name(OptionId::kHosts) + " takes names of hosts, and " +
                              shell_quote(job().hosts) + " is a file",
                          "write --hostfile " + shell_quote(job().hosts));
    take(OptionId::kHostfile, not_empty, job().hostfile);
    take(OptionId::kHostsExclude, not_empty, job().hosts_exclude);
    std::pair<int, int> hosts;
    take(OptionId::kNnodes, parse_host_counts, hosts);
    if (hosts.first == hosts.second) num_hosts_ = hosts.first;
    take(OptionId::kLauncher, parse_launcher, job().launcher);
    if (has(OptionId::kMpi)) {
      values_.exclude(OptionId::kMpi, OptionId::kLauncher);
      job().launcher = launcher::LauncherChoice::kMpirun;
    }
    read_gloo(values_, context_.environment, job(), request_.notes);
    if (job().launcher == launcher::LauncherChoice::kSrun) read_srun();
    if (job().launcher == launcher::LauncherChoice::kMpirun) {
      request_.mpi = read_mpi_task(given_, values_);
      pass_mapping_to_mpi_ranks();
    } else {
      values_.refuse_given({OptionId::kMpirun, OptionId::kMpiArgs, OptionId::kBindingArgs, OptionId::kTcp},
                           " belongs to --launcher mpirun",
                           "add --launcher mpirun, or omit it: ddlrun starts the ranks itself");
    }
    if (!job().placed_ranks.empty() && !has_agents(job()))
      values_.refuse_once("a rankfile needs ddlrun's agents, and srun and mpirun run without them",
                          "omit it, or omit --launcher");
    read_elastic(values_, context_, job(), hosts.first, hosts.second, request_.notes);
    if (request_.action == Action::kDryRun)
      values_.refuse_given({OptionId::kDiscovery}, " runs a program, and --dry-run starts nothing",
                           "name the hosts with -H to see a plan for them");
    read_mca();
    take(OptionId::kSshPort, parse_port, job().ssh.port);
    take(OptionId::kSshIdentityFile, parse_file, job().ssh.identity_file, context_.current_directory);
    take(OptionId::kSshArgs, parse_ssh_args, job().ssh.args);
    take(OptionId::kLaunchAgent, parse_launch_agent, job().ssh.launch_agent);
    take(OptionId::kSshParallel, parse_count, job().ssh.parallel, 1, kMaxParallel);
    take(OptionId::kFanOut, parse_count, job().ssh.fan_out, 0, kMaxFanOut);
    take(OptionId::kStartTimeout, parse_seconds, job().ssh.start_timeout_seconds, false);
    take(OptionId::kRemotePath, parse_remote_path, job().ssh.remote_path);
    // A repeated option adds to the list, as in horovodrun.
    for (const GivenValue& value : given_[OptionId::kNetworkInterfaces]) {
      for (std::string& name :
           values_.value_of(OptionId::kNetworkInterfaces, value, parse_interfaces(value.text))) {
        auto& names = job().network_interfaces;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
      }
    }
  }

  /// mpirun maps the ranks; the ddlrun of each rank binds it by the same rule.
  void pass_mapping_to_mpi_ranks() {
    const affinity::BindingPolicy& binding = job().binding;
    std::vector<std::string>& words = request_.mpi.rank_options;
    if (!request_.mpi.options.binding_args.empty()) return;
    if (binding.mapping.object != affinity::BindTo::kAuto)
      words.insert(words.end(), {"--map-by", affinity::text_of(binding.mapping)});
    if (binding.cores_per_rank > 0 && !has(OptionId::kCoresPerRank))
      words.insert(words.end(), {"--cores-per-rank", std::to_string(binding.cores_per_rank)});
  }

  /// mpirun has parameters of its own; without it those of the ranks are variables.
  void read_mca() {
    for (const GivenValue& value : given_[OptionId::kMca]) {
      const auto [name, text] = values_.value_of(OptionId::kMca, value, parse_mca(value.text));
      if (job().launcher == launcher::LauncherChoice::kMpirun) {
        request_.mpi.options.mpi_args.insert(request_.mpi.options.mpi_args.end(), {"--mca", name, text});
      } else {
        job().exports.push_back({"OMPI_MCA_" + name, text});
      }
    }
  }

  void read_srun() {
    if (request_.action == Action::kScript) return;
    take(OptionId::kMpiType, not_empty, request_.script.request.mpi_type);
    for (const GivenValue& value : given_[OptionId::kSrunOption])
      request_.script.request.srun_options.push_back(
          values_.value_of(OptionId::kSrunOption, value, parse_option(value.text)));
    values_.check(refuse_beyond_srun(given_));
    if (has(OptionId::kJobName))
      values_.refuse_once(
          "--job-name names a job for --inspect, which asks ddlrun's agents, and srun runs without them",
          "omit it, or omit --launcher srun");
    if (has(OptionId::kJson))
      values_.refuse_once(
          "--json reports on ranks that ddlrun has started, but --launcher srun starts them by srun",
          "omit one of them");
  }

  void read_input_output() {
    take(OptionId::kStdin, parse_stdin_target, job().stdin_target);
    take(OptionId::kOutputFilename, parse_directory, job().output_directory, context_.current_directory);
    job().merges_stderr = has(OptionId::kMergeStderr);
    job().timestamp_output = has(OptionId::kPrefixTimestamp);
    if (request_.action != Action::kCheckBuild) read_timeline();
  }

  void read_timeline() {
    take(OptionId::kTimelineFile, parse_file, job().timeline_file, context_.current_directory);
    int megabytes = 0;
    take(OptionId::kTimelineSize, parse_count, megabytes, 1, contract::kMaxTimelineMegabytes);
    if (megabytes == 0) {
      const std::string variable =
          variable_of_ranks(job(), context_.environment, contract::env::kTimelineMaxMb);
      // libddl refuses what is wrong.
      megabytes = parse_count(variable, 1, contract::kMaxTimelineMegabytes).value_or(0);
    }
    if (megabytes > 0) job().timeline_bytes = static_cast<std::uint64_t>(megabytes) << 20;
    std::string variable = variable_of_ranks(job(), context_.environment, contract::env::kTimeline);
    if (variable.empty())
      variable = variable_of_ranks(job(), context_.environment, contract::env::kHorovodTimeline);
    // In Horovod, "DYNAMIC" is no file: the program begins a timeline later.
    if (!variable.empty() && variable != "DYNAMIC" && !has(OptionId::kTimelineFile)) {
      if (const auto path = parse_file(variable, context_.current_directory)) job().timeline_file = *path;
    }
    if (has_agents(job()) || job().timeline_file.empty()) return;
    // Without agents rank 0 writes it.
    job().exports.push_back({contract::env::kTimeline, std::exchange(job().timeline_file, "")});
    if (megabytes > 0) job().exports.push_back({contract::env::kTimelineMaxMb, std::to_string(megabytes)});
  }

  // ---- what several options determine together ----

  void check_command(const std::vector<std::string>& command) {
    if (command.empty()) {
      values_.refuse_once(
          "no command was given",
          "for example: ddlrun -np " + std::to_string(context_.allowed_cpus) + " python train.py");
    } else if (command.front().empty()) {
      values_.refuse_once("the command is an empty word", "name a program");
    }
    check_colons(command);
  }

  /// mpirun's "a : -np 1 b" starts two programs. Here the second one would become arguments of the first.
  void check_colons(const std::vector<std::string>& command) {
    const bool by_mpirun = job().launcher == launcher::LauncherChoice::kMpirun;
    const bool by_srun = job().launcher == launcher::LauncherChoice::kSrun;
    for (std::size_t i = 1; i < command.size(); ++i) {
      if (command[i] != ":") continue;
      const std::string next = i + 1 < command.size() ? command[i + 1] : "";
      const bool starts_program =
          next.starts_with('-') && find_spelling(std::string_view(next).substr(0, next.find('='))) != nullptr;
      std::string hint = "start a shell script that runs one program or the other, depending on $RANK";
      if (starts_program)
        return values_.refuse_once(
            "': " + next + "' would begin a second program, but all ranks of a job run the same one",
            std::move(hint));
      if (by_mpirun || by_srun)
        return values_.refuse_once(std::string("the command contains the word ':', where ") +
                                       (by_mpirun ? "mpirun" : "srun") + " would begin a second program",
                                   "write the command into a shell script, and start the script");
    }
  }

  void find_hosts() {
    if (!values_.status()) return;
    std::string text;
    if (job().rankfile == "-") claim_standard_input("--rankfile -");
    if (!job().hostfile.empty()) {
      if (job().hostfile == "-") claim_standard_input("--hostfile -");
      auto read = context_.read_file
                      ? context_.read_file(job().hostfile)
                      : Result<std::string>(fail(ErrorCode::kUnavailable, "files are not read here"));
      if (!read) {
        values_.refuse_once(OptionId::kHostfile, "the hostfile cannot be read: " + read.error().message(),
                            "name a file with one host a line, or hosts with -H, as in -H node1:4,node2:4");
        return;
      }
      text = std::move(*read);
    }
    // --check-build in each of several tasks of a step: every task checks its own node.
    const bool each_for_itself =
        request_.action == Action::kCheckBuild && !launcher::check_single_task(context_.environment);
    std::optional<launcher::SchedulerJob> scheduler_job;
    if (!each_for_itself) {
      auto found = launcher::job_to_use(job(), context_.environment);
      if (!found) return values_.check(fail(std::move(found.error())));
      scheduler_job = *std::move(found);
    }
    auto hosts = launcher::named_hosts(job(), text, scheduler_job, context_.hostname);
    if (!hosts) return refuse_hosts(std::move(hosts.error()));
    values_.check(OptionId::kFanOut, launcher::check_fan_out(job(), scheduler_job));
    if (!values_.status()) return;
    auto allocation = launcher::find_allocation(job(), *std::move(hosts), scheduler_job, context_.hostname);
    if (!allocation) return values_.check(fail(std::move(allocation.error())));
    request_.allocation = *std::move(allocation);
    for (launcher::AllocatedNode& node : request_.allocation.nodes) {
      if (!node.slots) node.slots = job().elastic.slots_per_host;
    }
    choose_first_hosts();
    note_unused_bindings();
    if (const Status placed =
            launcher::resolve_hosts(job().placed_ranks, request_.allocation, context_.hostname);
        !placed)
      values_.refuse_once(placed.error().message(),
                          has(OptionId::kHostsExclude) || has(OptionId::kNnodes)
                              ? "--hosts-exclude and --nnodes leave hosts out: omit them, or "
                                "place no rank there"
                              : usage_line(entry_of(OptionId::kRankfile)));
  }

  /// Hostfiles of other launchers may say which CPUs ranks get. ddlrun plans that itself.
  void note_unused_bindings() {
    for (const launcher::AllocatedNode& node : request_.allocation.nodes) {
      if (node.unused_binding.empty()) continue;
      request_.notes.push_back(request_.allocation.origin + " binds ranks of " + node.name + " to " +
                               launcher::in_double_quotes(node.unused_binding) +
                               ", which is not used; --bind-to and --rankfile bind ranks");
      return;
    }
  }

  /// --nnodes.
  void choose_first_hosts() {
    auto& nodes = request_.allocation.nodes;
    const std::size_t wanted = num_hosts_;
    if (wanted > nodes.size())
      values_.refuse_once(OptionId::kNnodes,
                          "--nnodes asks for " + counted(num_hosts_, "host") + ", and " +
                              request_.allocation.origin + " has " + std::to_string(nodes.size()),
                          "name more hosts with -H, as in -H node1:4,node2:4, or with --hostfile");
    if (wanted > 0 && wanted < nodes.size()) nodes.resize(wanted);
  }

  void refuse_hosts(Error error) {
    // Where hosts were given is in the message.
    if (has(OptionId::kHosts)) return values_.check(fail(error.with_hint(hint_about_hosts(error.hint()))));
    values_.check(has(OptionId::kHostfile) ? OptionId::kHostfile : OptionId::kHostsExclude,
                  fail(std::move(error)));
  }

  /// A name that no host is likely to have, of a file that can be read: hosts.txt, hostfile.
  bool is_file_of_hosts(const std::string& hosts) const {
    const bool may_be_file =
        hosts.find_first_of(":,[@") == std::string::npos &&
        (hosts.find('.') != std::string::npos || hosts.find("host") != std::string::npos);
    return may_be_file && context_.read_file && context_.read_file(hosts);
  }

  /// usual: the hint if no mistake is likely.
  std::string hint_about_hosts(const std::string& usual) const {
    const std::string& hosts = request_.job.hosts;
    if (hosts.find('/') != std::string::npos) return "a file of hosts is named with --hostfile; " + usual;
    return hosts.ends_with(',') ? "write the hosts as one word, without a space behind a comma" : usual;
  }

  void claim_standard_input(const std::string& reader) {
    if (!has(OptionId::kStdin)) {
      job().stdin_target = launcher::StdinTarget::kNone;
    } else if (job().stdin_target != launcher::StdinTarget::kNone) {
      values_.refuse_once(reader + " reads standard input, so ranks cannot", "omit --stdin, or name a file");
    }
  }

  void find_num_ranks(const std::vector<std::string>& command) {
    if (!values_.status() || job().num_ranks > 0) return;
    values_.check(refuse_rank_count_behind(command));
    if (!values_.status()) return;
    if (!job().elastic.discovery.empty()) {
      if (has(OptionId::kMinNp)) return take(OptionId::kMinNp, parse_rank_count, job().num_ranks);
      return values_.refuse_once("-np is missing: with how many ranks does the job start?",
                                 "give -np N, or --min-np N to start with as many as there are");
    }
    const bool implies_count =
        has(OptionId::kHosts) || has(OptionId::kHostfile) || has(OptionId::kRanksPerNode);
    if (job().binding.mapping.ranks_per_object > 0 && !request_.allocation.job && !has_given_slots())
      return values_.refuse_once(
          "-np is missing: how many ranks? --map-by " + affinity::text_of(job().binding.mapping) +
              " depends on the objects of each host, which are known only at launch",
          "give the number of ranks with -np; ddlrun --show-topology counts them on a host");
    if (!implies_count && !request_.allocation.job)
      return values_.check(missing_rank_count(command, context_.allowed_cpus));
    const auto implied = launcher::implied_num_ranks(job(), request_.allocation);
    if (!implied) {
      return values_.refuse_once(
          "-np is missing, and " + implied.error().message(),
          "give the number of ranks with -np, or slots for every host, as in -H node1:4,node2:4");
    }
    job().num_ranks = *implied;
  }

  bool has_given_slots() const {
    const auto& nodes = request_.allocation.nodes;
    return std::all_of(nodes.begin(), nodes.end(),
                       [](const launcher::AllocatedNode& node) { return node.slots.has_value(); });
  }

  template <class Parse, class T, class... Args>
  void take(OptionId id, Parse parse, T& target, const Args&... args) {
    values_.take(id, parse, target, args...);
  }

  Request& request_;
  const GivenOptions& given_;
  const CommandLineContext& context_;
  ValueReader& values_;
  int num_hosts_ = 0;  ///< of --nnodes; 0: all
};

}  // namespace

std::string mpirun_choice(const GivenOptions& given) {
  return given.has(OptionId::kMpi) ? "--mpi" : "--launcher mpirun";
}

std::string variable_of_ranks(const JobSpec& job, const Environment& own, const char* name) {
  const auto given = std::find_if(
      job.exports.rbegin(), job.exports.rend(),
      [name](const launcher::EnvironmentExport& one) { return one.name == name && one.value.has_value(); });
  return given == job.exports.rend() ? value_of(own, name) : *given->value;
}

Status refuse_beyond_srun(const GivenOptions& given, OptionId allowed) {
  for (const OptionEntry& entry : option_table()) {
    if ((entry.rules & kNotWithSrun) == 0 || !given.has(entry.id) || entry.id == allowed) continue;
    return fail(Error(ErrorCode::kInvalidArgument,
                      display_name(entry) + " needs ddlrun's agents, and srun runs without them",
                      "omit it, or omit --launcher srun")
                    .during(given.where(entry.id)));
  }
  return {};
}

Status read_job_by(ValueReader& values, Request& request, const CommandLine& line) {
  return JobReader(request, values, line.context).read(line.split.command);
}

Status read_job(Request& request, const CommandLine& line) {
  ValueReader values(line.given);
  return read_job_by(values, request, line);
}

}  // namespace ddl::cli
