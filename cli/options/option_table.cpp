#include "cli/options/option_table.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

using enum OptionId;
using enum OptionGroup;

constexpr std::string_view kHostsAreGiven =
    "hosts are given with -H, as in -H node1:4,node2:4, or in a file with --hostfile";
constexpr std::string_view kOwnAlgorithms = "libddl chooses the way through the hosts itself; omit it";
constexpr std::string_view kNothingTuned = "nothing tunes the way that libddl chooses through the hosts";
constexpr std::string_view kNoNamedTier =
    "this version has no fusion buffer, cycle or cache to tune; omit it";
constexpr std::string_view kNoTimeline = "this version records no timeline; omit it";
constexpr std::string_view kNoStallCheck =
    "set DDL_TIMEOUT_SECONDS for the ranks (-x DDL_TIMEOUT_SECONDS=60): a collective then fails after so "
    "long";
constexpr std::string_view kNoElastic =
    "this version starts a fixed number of ranks; omit it and give that number with -np";
constexpr std::string_view kNoAutotune = "this version has nothing to tune; omit it";
constexpr std::string_view kNoMpi =
    "pass mpirun's own with --launcher mpirun --mpi-args ARGS, or Open MPI's with -x OMPI_MCA_NAME=VALUE";
constexpr std::string_view kNoLog = "use --verbose for more messages of ddlrun, or --quiet for fewer";
constexpr std::string_view kNumberOfRanks = "the number of ranks is given with -np";
constexpr std::string_view kRanksOnEach = "use --ranks-per-node N for so many ranks on each host";

constexpr OptionEntry kTable[] = {
    {kNumProc, kRanks, "-np,--num-proc,--np", "N", "start N ranks (default: as many as slots were given)"},
    {kRanksPerNode, kRanks, "--ranks-per-node", "N", "so many ranks on each host"},
    {kMapBy, kRanks, "--map-by", "slot|node", "fill one host after the other (default), or take turns"},
    {kOversubscribe, kRanks, "--oversubscribe", "",
     "allow more ranks than slots; a host has one for each CPU"},
    {kExport, kRanks, "-x", "NAME[=VALUE]",
     "set a variable for the ranks, or pass on ddlrun's own; repeatable"},
    {kCpuOperations, kRanks, "--cpu-operations", "ddl|mpi",
     "who carries out libddl's collectives (default: ddl, itself)"},
    {kWorkdir, kRanks, "--workdir", "DIR", "start the ranks in DIR (default: the current directory)"},
    {kTimeout, kRanks, "--timeout", "SECONDS", "end the job after so long; the exit code is then 124"},
    {kKillGrace, kRanks, "--kill-grace", "SECONDS",
     "how long ranks may take to end before SIGKILL (default: 5)"},

    {kBindTo, kBinding, "--bind-to,-bind-to", "WHAT",
     "auto, gpu, numa, l3, socket, core, pu or none (default: auto)"},
    {kCoresPerRank, kBinding, "--cores-per-rank", "N",
     "so many cores for each rank (default: its whole share)"},
    {kReserve, kBinding, "--reserve", "first-core-per-l3|LIST", "leave these cores to the system: 0,8,16-17"},
    {kRankOrder, kBinding, "--rank-order", "gpu|cpu",
     "local rank r has GPU r (default), or ranks ascend by CPU"},
    {kSmt, kBinding, "--smt", "", "also the other hardware threads of a rank's cores"},
    {kGpusPerRank, kBinding, "--gpus-per-rank", "N", "so many GPUs for each rank"},
    {kRanksPerGpu, kBinding, "--ranks-per-gpu", "N", "so many ranks on each GPU (default: evenly)"},
    {kMemBind, kBinding, "--mem-bind", "local|none", "memory from near a rank's CPUs (default), or anywhere"},
    {kReportBindings, kBinding, "--report-bindings,-report-bindings", "",
     "show what the kernel says of every started rank"},
    {kStrictBind, kBinding, "--strict-bind", "", "start no rank that cannot be bound as planned"},
    {kShowBind, kBinding, "--show-bind", "",
     "print where -np N ranks of one node would run, and start nothing"},
    {kExplainBind, kBinding, "--explain-bind", "", "the same, with a sentence why for each rank"},
    {kShowTopology, kBinding, "--show-topology", "",
     "print the node, with -np N with its ranks, and start nothing"},
    {kFormat, kBinding, "--format", "FORM",
     "map_cpu, mask_cpu, srun, taskset, svg, json, ... (default: table)"},
    {kTopology, kBinding, "--topology", "NODE",
     "of an hwloc XML file, or \"pack:2 numa:2 l3:2 core:8 pu:2\""},
    {kSite, kBinding, "--site", "NAME|FILE",
     "as this site has its nodes, and by its rules: lumi-g; --list-sites"},
    {kTopologyText, kBinding, "--topology-text", "FILE",
     "of what rocm-smi, nvidia-smi topo -m and lscpu print; repeatable"},

    {kHosts, kPlaces, "-H,--hosts", "HOSTS", "hosts and their slots, as in the examples below"},
    {kHostfile, kPlaces, "-hostfile,--hostfile", "FILE",
     "the same in a file, one a line; - is standard input"},
    {kHostsExclude, kPlaces, "--hosts-exclude", "HOSTS", "leave these hosts out"},
    {kLauncher, kPlaces, "--launcher", "auto|local|ssh|srun|mpirun",
     "how to reach them (default: ssh, but not to this machine)"},
    {kMpi, kPlaces, "--mpi", "", "the same as --launcher mpirun: the MPI's mpirun starts the ranks"},
    {kMpirun, kPlaces, "--mpirun", "FILE", "for --launcher mpirun: which one (default: mpirun)"},
    {kMpiArgs, kPlaces, "--mpi-args", "ARGS", "more words for mpirun, before the command"},
    {kBindingArgs, kPlaces, "--binding-args", "ARGS", "words for mpirun's binding instead of ours"},
    {kTcp, kPlaces, "--tcp", "", "of --launcher mpirun: its MPI uses TCP and shared memory alone"},
    {kSshPort, kPlaces, "-p,--ssh-port", "PORT", "the port of their ssh"},
    {kSshIdentityFile, kPlaces, "-i,--ssh-identity-file", "FILE", "the key to log in with"},
    {kSshArgs, kPlaces, "--ssh-args", "ARGS", "more words for ssh: --ssh-args \"-J me@bastion\""},
    {kLaunchAgent, kPlaces, "--launch-agent", "CMD", "a command to use instead of ssh; %h is the host"},
    {kSshParallel, kPlaces, "--ssh-parallel", "N", "open so many connections at once (default: 32)"},
    {kFanOut, kPlaces, "--fan-out", "N", "let hosts connect to N others each (default: 0, to none)"},
    {kStartTimeout, kPlaces, "--start-timeout", "SECONDS",
     "how long each host may take to answer (default: 30)"},
    {kRemotePath, kPlaces, "--remote-path", "PATH", "ddlrun on the other hosts (default: where it is here)"},
    {kNetworkInterfaces, kPlaces, "--network-interfaces,--network-interface", "NAMES",
     "let ranks use only these: eth0,ib0 (default: all)"},

    {kStdin, kInputOutput, "--stdin", "0|all|none", "which ranks read standard input (default: rank 0)"},
    {kOutputFilename, kInputOutput, "--output-filename", "DIR",
     "also write the output to DIR/rank.R/stdout and stderr"},
    {kTagOutput, kInputOutput, "--tag-output", "",
     "put \"[rank]<stdout>:\" before every line (default if N > 1)"},
    {kNoTagOutput, kInputOutput, "--no-tag-output", "", "leave the ranks' lines as they are"},
    {kPrefixTimestamp, kInputOutput, "--prefix-output-with-timestamp,-prefix-timestamp", "",
     "put the time of writing before every line"},

    {kSlurm, kScripts, "--slurm", "", "print a job script for sbatch instead of starting anything"},
    {kNodes, kScripts, "--nodes", "N", "so many nodes (default: as -np and a node's GPUs or ranks make it)"},
    {kGpusPerNode, kScripts, "--gpus-per-node", "N", "GPUs of each node; 0: none (default: the site's)"},
    {kAccount, kScripts, "-A,--account", "NAME", "the project that pays"},
    {kPartition, kScripts, "--partition", "NAME", "default: the site's"},
    {kQos, kScripts, "--qos", "NAME", "quality of service"},
    {kTime, kScripts, "--time", "LIMIT", "30:00, 2:00:00 or 1-12:00:00"},
    {kJobName, kScripts, "--job-name", "NAME", "default: the command's"},
    {kMem, kScripts, "--mem", "SIZE", "memory of each node: 64G"},
    {kMemPerCpu, kScripts, "--mem-per-cpu", "SIZE", "or of each CPU"},
    {kMemPerGpu, kScripts, "--mem-per-gpu", "SIZE", "or of each GPU"},
    {kExclusive, kScripts, "--exclusive", "", "no other job on its nodes"},
    {kConstraint, kScripts, "--constraint", "FEATURES", "only nodes with these features"},
    {kDependency, kScripts, "--dependency", "JOBS", "start after others: afterok:4711"},
    {kArray, kScripts, "--array", "TASKS", "an ensemble, each member a job of its own: 0-9%4"},
    {kRequeue, kScripts, "--requeue", "", "start again after a lost node or a preemption"},
    {kRequeueOn, kScripts, "--requeue-on", "CODE", "start again when the ranks end with this exit code"},
    {kSignal, kScripts, "--signal", "SIGNAL@SECONDS", "tell the ranks before the time is over: USR2@120"},
    {kOutput, kScripts, "--output", "PATTERN", "where the job's output goes (default: %x-%j.out)"},
    {kError, kScripts, "--error", "PATTERN", "and its errors (default: with the output)"},
    {kMailUser, kScripts, "--mail-user", "ADDRESS", "who is told of it"},
    {kMailType, kScripts, "--mail-type", "EVENTS", "and of what: END,FAIL"},
    {kSbatch, kScripts, "--sbatch", "OPTION",
     "any other option of sbatch: --sbatch=--licenses=x; repeatable"},
    {kModule, kScripts, "--module", "NAME", "load this module first; repeatable"},
    {kEasybuildPrefix, kScripts, "--easybuild-prefix", "DIR", "where EasyBuild put modules of your own"},
    {kEessi, kScripts, "--eessi", "VERSION", "take software from EESSI: 2023.06"},
    {kConda, kScripts, "--conda", "NAME|DIR", "activate this conda environment"},
    {kVenv, kScripts, "--venv", "DIR", "activate this Python environment"},
    {kSetup, kScripts, "--setup", "LINE", "a line of shell before the ranks start; repeatable"},
    {kContainer, kScripts, "--container", "IMAGE", "run each rank in this image of Apptainer or Singularity"},
    {kContainerBind, kScripts, "--container-bind", "DIR[:DIR]", "a folder that it shall see; repeatable"},
    {kContainerRuntime, kScripts, "--container-runtime", "NAME", "apptainer or singularity"},
    {kGpuChoice, kScripts, "--gpu-choice", "WAY",
     "for srun: visible-devices or gpu-bind (default: the site's)"},
    {kGpuVendor, kScripts, "--gpu-vendor", "NAME", "nvidia, amd or intel (default: the site's)"},
    {kMpiType, kScripts, "--mpi-type", "TYPE", "for srun's --mpi= (default: what the site has)"},
    {kTemplate, kScripts, "--template", "FILE", "a frame of your own for the script"},
    {kScriptFile, kScripts, "-o,--script-file", "FILE", "write the script there"},
    {kForce, kScripts, "--force", "", "also over a file that is there"},
    {kSubmit, kScripts, "--submit", "", "hand the script to sbatch, and print the job's number"},
    {kTestOnly, kScripts, "--test-only", "", "ask the cluster when it would start, and submit nothing"},
    {kLint, kScripts, "--lint", "FILE", "check a job script that somebody wrote"},
    {kListSites, kScripts, "--list-sites", "", "the sites that --site knows"},
    {kShowSite, kScripts, "--show-site", "NAME|FILE", "print a site's profile"},

    {kDryRun, kReports, "--dry-run", "", "print what would be started where, and start nothing"},
    {kProbe, kReports, "--probe", "", "with --dry-run: ask the hosts where each rank would run, and why"},
    {kJson, kReports, "--json", "", "the report, or what --dry-run and --check-* print, as JSON"},
    {kVerbose, kReports, "--verbose", "", "say what is being done"},
    {kQuiet, kReports, "--quiet", "", "no notes; errors and the ranks' output stay"},

    {kConfigFile, kAbout, "--config-file", "FILE", "read options from YAML; those on the command line win"},
    {kCheckHosts, kAbout, "--check-hosts", "", "ask every host of -H or --hostfile what it has, and compare"},
    {kCheckBuild, kAbout, "-cb,--check-build", "",
     "what is built, what works here or on the hosts, and why not"},
    {kCheckBox, kAbout, "--check-box", "NAME",
     "one thing of --check-build: exits with 0 if it works, else 1"},
    {kVersion, kAbout, "-v,--version", "", "show the version"},
    {kHelp, kAbout, "-h,--help", "", "show this"},

    // horovodrun's (0.28.1, and --torus-allreduce of later ones) that ask for what is so anyway.
    {kWithoutEffect, kHidden, "--disable-cache", "", "ddlrun keeps no results of checks"},
    {kWithoutEffect, kHidden, "--no-hierarchical-allreduce", "", kNothingTuned},
    {kWithoutEffect, kHidden, "--no-torus-allreduce", "", kNothingTuned},
    {kWithoutEffect, kHidden, "--no-hierarchical-allgather", "", kNothingTuned},
    {kWithoutEffect, kHidden, "--no-autotune", "", "there is nothing to tune"},
    {kWithoutEffect, kHidden, "--no-timeline-mark-cycles", "", "no timeline is recorded"},
    {kWithoutEffect, kHidden, "--no-stall-check", "", "nothing warns of stalls"},
    {kWithoutEffect, kHidden, "--no-mpi-threads-disable", "", "threads are never disabled in an MPI"},
    {kWithoutEffect, kHidden, "--log-without-timestamp,--log-hide-timestamp", "",
     "ddlrun's messages carry no time"},
    {kWithoutEffect, kHidden, "--gloo", "", "ddlrun starts the ranks itself, without an MPI"},

    // horovodrun's, not in this version.
    {kUnavailable, kHidden, "--host-discovery-script", "FILE", kNoElastic},
    {kUnavailable, kHidden, "--fusion-threshold-mb", "MB", kNoNamedTier},
    {kUnavailable, kHidden, "--cycle-time-ms", "MS", kNoNamedTier},
    {kUnavailable, kHidden, "--cache-capacity", "N", kNoNamedTier},
    {kUnavailable, kHidden, "--hierarchical-allreduce", "", kOwnAlgorithms},
    {kUnavailable, kHidden, "--hierarchical-allgather", "", kOwnAlgorithms},
    {kUnavailable, kHidden, "--torus-allreduce", "", kOwnAlgorithms},
    {kUnavailable, kHidden, "--autotune", "", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-log-file", "FILE", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-warmup-samples", "N", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-steps-per-sample", "N", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-bayes-opt-max-samples", "N", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-gaussian-process-noise", "X", kNoAutotune},
    {kUnavailable, kHidden, "--min-np,--min-num-proc", "N", kNoElastic},
    {kUnavailable, kHidden, "--max-np,--max-num-proc", "N", kNoElastic},
    {kUnavailable, kHidden, "--slots-per-host,--slots", "N", kRanksOnEach},
    {kUnavailable, kHidden, "--elastic-timeout", "SECONDS", kNoElastic},
    {kUnavailable, kHidden, "--reset-limit", "N", kNoElastic},
    {kUnavailable, kHidden, "--blacklist-cooldown-range", "MIN", kNoElastic},
    {kUnavailable, kHidden, "--timeline-filename", "FILE", kNoTimeline},
    {kUnavailable, kHidden, "--timeline-mark-cycles", "", kNoTimeline},
    {kUnavailable, kHidden, "--stall-check", "", kNoStallCheck},
    {kUnavailable, kHidden, "--stall-check-warning-time-seconds", "SECONDS", kNoStallCheck},
    {kUnavailable, kHidden, "--stall-check-shutdown-time-seconds", "SECONDS", kNoStallCheck},
    {kUnavailable, kHidden, "--mpi-threads-disable", "", kNoMpi},
    {kUnavailable, kHidden, "--num-nccl-streams", "N", "this version has no GPU backend; omit it"},
    {kUnavailable, kHidden, "--thread-affinity", "N",
     "libddl's only thread sleeps while nothing is wrong; omit it"},
    {kUnavailable, kHidden, "--gloo-timeout-seconds", "SECONDS", kNoStallCheck},
    {kUnavailable, kHidden, "--log-level", "LEVEL", kNoLog},
    {kUnavailable, kHidden, "--log-with-timestamp,--no-log-hide-timestamp", "",
     "use --prefix-output-with-timestamp, which stamps the ranks' lines"},
    {kUnavailable, kHidden, "--jsrun", "",
     "ddlrun starts ranks itself, or by srun or mpirun (--launcher); omit it"},

    // What hands type that are used to mpirun, srun or torchrun.
    {kForeign, kHidden, "-n,--ntasks", "N", kNumberOfRanks},
    {kForeign, kHidden, "-c", "N",
     "ranks are counted with -np (mpirun's -c), their cores with --cores-per-rank (srun's)"},
    {kForeign, kHidden, "-N", "N",
     "use --ranks-per-node N for so many ranks on each host (mpirun's -N), and -H for hosts (srun's)"},
    {kForeign, kHidden, "--nproc-per-node,--nproc_per_node", "N", kRanksOnEach},
    {kForeign, kHidden, "--nnodes", "N", kHostsAreGiven},
    {kForeign, kHidden, "-host,--host,-machinefile,--machinefile", "HOSTS", kHostsAreGiven},
    {kForeign, kHidden, "-wdir,--wdir,--chdir", "DIR", "the working directory is given with --workdir"},
    {kForeign, kHidden, "-map-by,-ppr,--ppr", "WHAT",
     "use --map-by slot, --map-by node or --ranks-per-node N"},
    {kForeign, kHidden, "-bynode,--bynode", "", "use --map-by node: each host in turn gets a rank"},
    {kForeign, kHidden, "--ntasks-per-node,-npernode,--npernode,-ppn,--ppn,-perhost,--perhost", "N",
     kRanksOnEach},
    {kForeign, kHidden, "--cpus-per-task,--cpus-per-rank", "N", "use --cores-per-rank N"},
    {kForeign, kHidden, "-genv,--genv,-env,--env,-genvlist,--genvlist", "NAME",
     "use -x NAME=VALUE, or -x NAME to pass on ddlrun's own"},
    {kForeign, kHidden, "-genvall,--genvall,-envall,--envall", "",
     "omit it: ranks have ddlrun's environment"},
    {kForeign, kHidden, "-mca,--mca,-gmca,--gmca,--prtemca,--pmixmca", "NAME",
     "use -x OMPI_MCA_NAME=VALUE, or mpirun's own with --launcher mpirun --mpi-args ARGS"},
    {kForeign, kHidden,
     "--master-addr,--master_addr,--master-port,--master_port,--rdzv-endpoint,--rdzv_endpoint,--rdzv-backend,"
     "--rdzv_backend,--rdzv-id,--rdzv_id,--node-rank,--node_rank",
     "VALUE", "omit it: ddlrun tells the ranks where they meet"},
    {kForeign, kHidden, "-f", "FILE", kHostsAreGiven},
    {kForeign, kHidden, "--cpu-bind", "WHAT",
     "use --bind-to; --show-bind --format srun prints what srun takes"},
    {kForeign, kHidden, "--timestamp-output,-timestamp-output", "",
     "use --prefix-output-with-timestamp, or -prefix-timestamp"},
    {kForeign, kHidden, "-V", "", "the version is shown by -v or --version"},
    {kForeign, kHidden, "--standalone", "", "omit it: without -H ranks run on this machine"},
    {kForeign, kHidden, "--nodelist,-w", "HOSTS", kHostsAreGiven},
    {kForeign, kHidden, "--exclude", "HOSTS", "hosts are left out with --hosts-exclude"},
};

}  // namespace

std::span<const OptionEntry> option_table() { return kTable; }

const OptionEntry* find_spelling(std::string_view spelling) {
  if (spelling.empty()) return nullptr;
  for (const OptionEntry& entry : kTable) {
    const auto spellings = split(entry.spellings, ',');
    if (std::find(spellings.begin(), spellings.end(), spelling) != spellings.end()) return &entry;
  }
  return nullptr;
}

const OptionEntry& entry_of(OptionId id) {
  const auto* entry =
      std::find_if(std::begin(kTable), std::end(kTable), [id](const OptionEntry& e) { return e.id == id; });
  DDL_CHECK(entry != std::end(kTable), "option " + std::to_string(static_cast<int>(id)));
  return *entry;
}

std::string_view canonical_spelling(const OptionEntry& entry) {
  const auto spellings = split(entry.spellings, ',');
  const auto two_dashes = std::find_if(spellings.begin(), spellings.end(),
                                       [](std::string_view spelling) { return spelling.starts_with("--"); });
  return two_dashes != spellings.end() ? *two_dashes : spellings.front();
}

std::string display_name(const OptionEntry& entry) {
  const auto spellings = split(entry.spellings, ',');
  const std::string_view canonical = canonical_spelling(entry);
  if (spellings.front() == canonical) return std::string(canonical);
  return std::string(spellings.front()) + "/" + std::string(canonical);
}

std::string usage_line(const OptionEntry& entry) {
  std::string text(split(entry.spellings, ',').front());
  if (entry.takes_value()) text += " " + std::string(entry.value);
  return text + ": " + std::string(entry.help);
}

namespace {

std::string_view without_dashes(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string_view::npos ? std::string_view{} : word.substr(first);
}

}  // namespace

std::optional<std::string> suggest_option(std::string_view word) {
  const std::string_view name = without_dashes(word.substr(0, word.find('=')));
  // Longer than any option could be: not worth comparing.
  constexpr std::size_t kLongestName = 64;
  if (name.empty() || name.size() > kLongestName) return std::nullopt;

  int closest = std::numeric_limits<int>::max();
  std::string_view suggestion;
  for (const OptionEntry& entry : option_table()) {
    if (!entry.is_available()) continue;
    for (const std::string_view spelling : split(entry.spellings, ',')) {
      const std::string_view candidate = without_dashes(spelling);
      int distance = edit_distance(name, candidate);
      // "--output" for "--output-filename": cut short, as argparse would take it.
      if (name.size() >= 3 && candidate.starts_with(name)) distance = std::min(distance, 1);
      const int close_enough = static_cast<int>(std::max(name.size(), candidate.size())) / 3;
      // Another first letter of a short name is another name: -genv is no slip of --venv.
      constexpr std::size_t kShort = 6;
      if (name.size() < kShort && name.front() != candidate.front()) continue;
      if (distance <= close_enough && distance < closest) {
        closest = distance;
        suggestion = spelling;
      }
    }
  }
  if (suggestion.empty()) return std::nullopt;
  return std::string(suggestion);
}

namespace {

constexpr std::pair<OptionGroup, std::string_view> kHeadings[] = {
    {OptionGroup::kRanks, "Ranks"},         {OptionGroup::kBinding, "Binding"},
    {OptionGroup::kPlaces, "Hosts"},        {OptionGroup::kInputOutput, "Input and output"},
    {OptionGroup::kScripts, "Job scripts"}, {OptionGroup::kReports, "Reports"},
    {OptionGroup::kAbout, "About"},
};

constexpr std::size_t kHelpColumn = 34;

std::string option_line(const OptionEntry& entry) {
  std::string line = "  ";
  bool first = true;
  for (const std::string_view spelling : split(entry.spellings, ',')) {
    // Long synonyms would only widen the column; docs/reference/ddlrun.md has them.
    if (!first && line.size() + spelling.size() > kHelpColumn) continue;
    line += (first ? "" : ", ") + std::string(spelling);
    first = false;
  }
  if (entry.takes_value()) line += " " + std::string(entry.value);
  if (line.size() + 2 > kHelpColumn) {
    line += "\n" + std::string(kHelpColumn, ' ');
  } else {
    line.append(kHelpColumn - line.size(), ' ');
  }
  return line + std::string(entry.help) + "\n";
}

}  // namespace

std::string help_text() {
  std::string text =
      "Usage: ddlrun -np N [-H HOSTS] [options] [--] command [args...]\n"
      "\n"
      "Starts N ranks of a command, on this machine or on the hosts that are given, and ends with the\n"
      "exit code of the first one that fails.\n"
      "Options come before the command; everything after it is the command's.\n";
  for (const auto& [group, heading] : kHeadings) {
    text += "\n" + std::string(heading) + ":\n";
    for (const OptionEntry& entry : option_table()) {
      if (entry.group == group) text += option_line(entry);
    }
  }
  text +=
      "\n"
      "Exit codes: the first failing rank's own, 128+N for signal N, 2 for a wrong option, 121 for a\n"
      "lost host, 122 when the job could not be started, 124 for --timeout, 126 or 127 when the\n"
      "command cannot be executed or does not exist.\n"
      "\n"
      "Examples:\n"
      "  ddlrun -np 4 python train.py --epochs 10        4 ranks; --epochs is train.py's\n"
      "  ddlrun -np 4 --output-filename logs ./train     and each rank's output in logs/rank.R/\n"
      "  ddlrun -np 2 -x LR=0.1 -x DATA ./train          LR set, DATA passed on\n"
      "  ddlrun -np 1 --no-tag-output ./train > out      the rank's bytes, unchanged\n"
      "  ddlrun -np 8 --oversubscribe --dry-run ./train  what would be started\n"
      "  ddlrun -H node1:2,node2:2 ./train               2 ranks on each, over ssh\n"
      "  ddlrun -np 16 -H node[01-04] --map-by node ./a  taking turns, by as many CPUs as they have\n"
      "  ddlrun -H me@node1:4,[2001:db8::1]:4 -p 2222 ./train\n"
      "  ddlrun --hostfile hosts.txt --ranks-per-node 1 hostname\n"
      "  ddlrun --check-hosts --hostfile hosts.txt       what those hosts have, and how they differ\n"
      "  ddlrun --show-bind -np 8                        which CPUs, GPU and NIC each rank would have\n"
      "  ddlrun --show-bind -np 8 --topology node.xml --format map_cpu    for srun --cpu-bind=\n"
      "  ddlrun --slurm -np 16 --site lumi-g --account project_465 --time 30:00 -- ./train > job.sh\n"
      "  ddlrun --slurm -np 8 --nodes 2 --time 2:00:00 --submit ./train    write it, check it, sbatch it\n"
      "  ddlrun --config-file job.yaml ./train           num-proc: 8, hosts: [a, b], ... in a file\n"
      "  ddlrun --check-build                            what works on this machine\n";
  return text;
}

std::string version_text() { return "ddlrun " + std::string(contract::kVersion) + "\n"; }

}  // namespace ddl::cli
