#include "cli/options/option_table.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/foreign_options.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

using enum OptionId;
using enum OptionGroup;
using enum OptionRule;

constexpr OptionEntry kTable[] = {
    {kNumProc, "-np,--num-proc,--np", "N", "start N ranks (default: as many as slots were given)", kRanks},
    {kRanksPerNode, "--ranks-per-node", "N", "so many ranks on each host", kRanks, kForScript},
    {kMapBy, "--map-by", "slot|node", "fill one host after the other (default), or take turns", kRanks,
     kForScript},
    {kOversubscribe, "--oversubscribe", "", "allow more ranks than slots; a host has one for each CPU",
     kRanks, kForScript},
    {kExport, "-x", "NAME[=VALUE]", "set a variable for the ranks, or pass on ddlrun's own; repeatable",
     kRanks, kForScript},
    {kCpuOperations, "--cpu-operations", "ddl|mpi",
     "who carries out libddl's collectives (default: ddl, itself)", kRanks, kForScript},
    {kWorkdir, "--workdir", "DIR", "start the ranks in DIR (default: the current directory)", kRanks,
     kForScript},
    {kTimeout, "--timeout", "SECONDS", "end the job after so long; the exit code is then 124", kRanks,
     kForScript | kNotWithSrun},
    {kKillGrace, "--kill-grace", "SECONDS", "how long ranks may take to end before SIGKILL (default: 5)",
     kRanks, kForScript | kForMpiRank | kNotWithSrun},

    {kBindTo, "--bind-to,-bind-to", "WHAT", "auto, gpu, numa, l3, socket, core, pu or none (default: auto)",
     kBinding, kForScript | kForMpiRank},
    {kCoresPerRank, "--cores-per-rank", "N", "so many cores for each rank (default: its whole share)",
     kBinding, kForScript | kForMpiRank},
    {kReserve, "--reserve", "first-core-per-l3|LIST", "leave these cores to the system: 0,8,16-17", kBinding,
     kForScript | kForMpiRank},
    {kRankOrder, "--rank-order", "gpu|cpu", "local rank r has GPU r (default), or ranks ascend by CPU",
     kBinding, kForScript | kForMpiRank},
    {kSmt, "--smt", "", "also the other hardware threads of a rank's cores", kBinding,
     kForScript | kForMpiRank},
    {kGpusPerRank, "--gpus-per-rank", "N", "so many GPUs for each rank", kBinding, kForScript | kForMpiRank},
    {kRanksPerGpu, "--ranks-per-gpu", "N", "so many ranks on each GPU (default: evenly)", kBinding,
     kForScript | kForMpiRank},
    {kMemBind, "--mem-bind", "local|none", "memory from near a rank's CPUs (default), or anywhere", kBinding,
     kForScript | kForMpiRank | kNotWithSrun},
    {kReportBindings, "--report-bindings,-report-bindings", "",
     "show what the kernel says of every started rank", kBinding, kForScript | kNotWithMpirun | kNotWithSrun},
    {kStrictBind, "--strict-bind", "", "start no rank that cannot be bound as planned", kBinding,
     kForScript | kForMpiRank | kNotWithSrun},
    {kShowBind, "--show-bind", "", "print where -np N ranks of one node would run, and start nothing",
     kBinding},
    {kExplainBind, "--explain-bind", "", "the same, with a sentence why for each rank", kBinding},
    {kShowTopology, "--show-topology", "", "print the node, with -np N with its ranks, and start nothing",
     kBinding},
    {kFormat, "--format", "FORM", "map_cpu, mask_cpu, srun, taskset, svg, json, ... (default: table)",
     kBinding},
    {kTopology, "--topology", "NODE", "of an hwloc XML file, or \"pack:2 numa:2 l3:2 core:8 pu:2\"",
     kBinding},
    {kSite, "--site", "NAME|FILE", "as this site has its nodes, and by its rules: lumi-g; --list-sites",
     kBinding},
    {kTopologyText, "--topology-text", "FILE",
     "of what rocm-smi, nvidia-smi topo -m and lscpu print; repeatable", kBinding},

    {kHosts, "-H,--hosts", "HOSTS", "hosts and their slots, as in the examples below", kPlaces, kNotInScript},
    {kHostfile, "-hostfile,--hostfile", "FILE", "the same in a file, one a line; - is standard input",
     kPlaces, kNotInScript},
    {kHostsExclude, "--hosts-exclude", "HOSTS", "leave these hosts out", kPlaces, kNotInScript},
    {kLauncher, "--launcher", "auto|local|ssh|srun|mpirun",
     "how to reach them (default: ssh, but not to this machine)", kPlaces},
    {kMpi, "--mpi", "", "the same as --launcher mpirun: the MPI's mpirun starts the ranks", kPlaces},
    {kMpirun, "--mpirun", "FILE", "for --launcher mpirun: which one (default: mpirun)", kPlaces},
    {kMpiArgs, "--mpi-args", "ARGS", "more words for mpirun, before the command", kPlaces},
    {kBindingArgs, "--binding-args", "ARGS", "words for mpirun's binding instead of ours", kPlaces},
    {kTcp, "--tcp", "", "of --launcher mpirun: its MPI uses TCP and shared memory alone", kPlaces},
    {kSshPort, "-p,--ssh-port", "PORT", "the port of their ssh", kPlaces, kNotInScript},
    {kSshIdentityFile, "-i,--ssh-identity-file", "FILE", "the key to log in with", kPlaces, kNotInScript},
    {kSshArgs, "--ssh-args", "ARGS", "more words for ssh: --ssh-args \"-J me@bastion\"", kPlaces,
     kNotInScript},
    {kLaunchAgent, "--launch-agent", "CMD", "a command to use instead of ssh; %h is the host", kPlaces,
     kNotInScript | kNotWithMpirun},
    {kSshParallel, "--ssh-parallel", "N", "open so many connections at once (default: 32)", kPlaces,
     kNotInScript | kNotWithMpirun},
    {kFanOut, "--fan-out", "N", "let hosts connect to N others each (default: 0, to none)", kPlaces,
     kNotInScript | kNotWithMpirun},
    {kStartTimeout, "--start-timeout", "SECONDS", "how long each host may take to answer (default: 30)",
     kPlaces, kForScript | kNotWithMpirun | kNotWithSrun},
    {kRemotePath, "--remote-path", "PATH", "ddlrun on the other hosts (default: where it is here)", kPlaces},
    {kNetworkInterfaces, "--network-interfaces,--network-interface", "NAMES",
     "let ranks use only these: eth0,ib0 (default: all)", kPlaces, kForScript | kNotWithSrun},

    {kStdin, "--stdin", "0|all|none", "which ranks read standard input (default: rank 0)", kInputOutput,
     kForScript | kForMpiRank},
    {kOutputFilename, "--output-filename", "DIR", "also write the output to DIR/rank.R/stdout and stderr",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kTagOutput, "--tag-output", "", "put \"[rank]<stdout>:\" before every line (default if N > 1)",
     kInputOutput, kForScript},
    {kNoTagOutput, "--no-tag-output", "", "leave the ranks' lines as they are", kInputOutput, kForScript},
    {kPrefixTimestamp, "--prefix-output-with-timestamp,-prefix-timestamp", "",
     "put the time of writing before every line", kInputOutput, kForScript | kNotWithSrun},

    {kSlurm, "--slurm", "", "print a job script for sbatch instead of starting anything", kScripts},
    {kNodes, "--nodes", "N", "so many nodes (default: as -np and a node's GPUs or ranks make it)", kScripts},
    {kGpusPerNode, "--gpus-per-node", "N", "GPUs of each node; 0: none (default: the site's)", kScripts},
    {kAccount, "-A,--account", "NAME", "the project that pays", kScripts},
    {kPartition, "--partition", "NAME", "default: the site's", kScripts},
    {kQos, "--qos", "NAME", "quality of service", kScripts},
    {kTime, "--time", "LIMIT", "30:00, 2:00:00 or 1-12:00:00", kScripts},
    {kJobName, "--job-name", "NAME", "default: the command's", kScripts},
    {kMem, "--mem", "SIZE", "memory of each node: 64G", kScripts},
    {kMemPerCpu, "--mem-per-cpu", "SIZE", "or of each CPU", kScripts},
    {kMemPerGpu, "--mem-per-gpu", "SIZE", "or of each GPU", kScripts},
    {kExclusive, "--exclusive", "", "no other job on its nodes", kScripts},
    {kConstraint, "--constraint", "FEATURES", "only nodes with these features", kScripts},
    {kDependency, "--dependency", "JOBS", "start after others: afterok:4711", kScripts},
    {kArray, "--array", "TASKS", "an ensemble, each member a job of its own: 0-9%4", kScripts},
    {kRequeue, "--requeue", "", "start again after a lost node or a preemption", kScripts},
    {kRequeueOn, "--requeue-on", "CODE", "start again when the ranks end with this exit code", kScripts},
    {kSignal, "--signal", "SIGNAL@SECONDS", "tell the ranks before the time is over: USR2@120", kScripts},
    {kOutput, "--output", "PATTERN", "where the job's output goes (default: %x-%j.out)", kScripts},
    {kError, "--error", "PATTERN", "and its errors (default: with the output)", kScripts},
    {kMailUser, "--mail-user", "ADDRESS", "who is told of it", kScripts},
    {kMailType, "--mail-type", "EVENTS", "and of what: END,FAIL", kScripts},
    {kSbatch, "--sbatch", "OPTION", "any other option of sbatch: --sbatch=--licenses=x; repeatable",
     kScripts},
    {kModule, "--module", "NAME", "load this module first; repeatable", kScripts},
    {kEasybuildPrefix, "--easybuild-prefix", "DIR", "where EasyBuild put modules of your own", kScripts},
    {kEessi, "--eessi", "VERSION", "take software from EESSI: 2023.06", kScripts},
    {kConda, "--conda", "NAME|DIR", "activate this conda environment", kScripts},
    {kVenv, "--venv", "DIR", "activate this Python environment", kScripts},
    {kSetup, "--setup", "LINE", "a line of shell before the ranks start; repeatable", kScripts},
    {kContainer, "--container", "IMAGE", "run each rank in this image of Apptainer or Singularity", kScripts},
    {kContainerBind, "--container-bind", "DIR[:DIR]", "a folder that it shall see; repeatable", kScripts},
    {kContainerRuntime, "--container-runtime", "NAME", "apptainer or singularity", kScripts},
    {kGpuChoice, "--gpu-choice", "WAY", "for srun: visible-devices or gpu-bind (default: the site's)",
     kScripts},
    {kGpuVendor, "--gpu-vendor", "NAME", "nvidia, amd or intel (default: the site's)", kScripts},
    {kMpiType, "--mpi-type", "TYPE", "for srun's --mpi= (default: what the site has)", kScripts},
    {kTemplate, "--template", "FILE", "a frame of your own for the script", kScripts},
    {kScriptFile, "-o,--script-file", "FILE", "write the script there", kScripts},
    {kForce, "--force", "", "also over a file that is there", kScripts},
    {kSubmit, "--submit", "", "hand the script to sbatch, and print the job's number", kScripts},
    {kTestOnly, "--test-only", "", "ask the cluster when it would start, and submit nothing", kScripts},
    {kLint, "--lint", "FILE", "check a job script that somebody wrote", kScripts},
    {kListSites, "--list-sites", "", "the sites that --site knows", kScripts},
    {kShowSite, "--show-site", "NAME|FILE", "print a site's profile", kScripts},

    {kDryRun, "--dry-run", "", "print what would be started where, and start nothing", kReports,
     kNotInScript},
    {kProbe, "--probe", "", "with --dry-run: ask the hosts where each rank would run, and why", kReports,
     kNotInScript | kNotWithMpirun},
    {kJson, "--json", "", "the report, or what --dry-run and --check-* print, as JSON", kReports,
     kNotWithMpirun},
    {kVerbose, "--verbose", "", "say what is being done", kReports, kForScript},
    {kQuiet, "--quiet", "", "no notes; errors and the ranks' output stay", kReports, kForScript},

    {kConfigFile, "--config-file", "FILE", "read options from YAML; those on the command line win", kAbout},
    {kCheckHosts, "--check-hosts", "", "ask every host of -H or --hostfile what it has, and compare", kAbout},
    {kCheckBuild, "-cb,--check-build", "", "what is built, what works here or on the hosts, and why not",
     kAbout},
    {kCheckCapability, "--check-box", "NAME", "one thing of --check-build: exits with 0 if it works, else 1",
     kAbout},
    {kVersion, "-v,--version", "", "show the version", kAbout},
    {kHelp, "-h,--help", "", "show this", kAbout},
};

/// Without split(), which allocates: it is asked for every word of the command line.
bool has_spelling(const OptionEntry& entry, std::string_view wanted) {
  std::string_view rest = entry.spellings;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (rest.substr(0, comma) == wanted) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::span<const OptionEntry> option_table() { return kTable; }

const OptionEntry* find_spelling(std::string_view spelling) {
  for (const auto table : {option_table(), foreign_options()}) {
    for (const OptionEntry& entry : table) {
      if (has_spelling(entry, spelling)) return &entry;
    }
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
