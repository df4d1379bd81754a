#include "cli/option_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace ddl::cli {

namespace {

using enum OptionId;
using enum OptionGroup;

constexpr std::string_view kThisMachineOnly =
    "this version starts ranks on this machine only; leave it away, -np alone says how many";
constexpr std::string_view kNoNamedTier =
    "this version has no fusion buffer, cycle or cache to tune; leave it away";
constexpr std::string_view kNoTimeline = "this version records no timeline; leave it away";
constexpr std::string_view kNoStallCheck =
    "set DDL_TIMEOUT_SECONDS for the ranks (-x DDL_TIMEOUT_SECONDS=60): a collective then fails after so "
    "long";
constexpr std::string_view kNoElastic =
    "this version starts a fixed number of ranks; leave it away and give that number with -np";
constexpr std::string_view kNoAutotune = "this version has nothing to tune; leave it away";
constexpr std::string_view kNoController =
    "ddlrun has one way of starting ranks, with its own PMIx server; leave it away";
constexpr std::string_view kNoMpi =
    "ddlrun does not call mpirun; leave it away, or pass Open MPI's own settings with -x OMPI_MCA_NAME=VALUE";
constexpr std::string_view kNoLog = "use --verbose for more messages of ddlrun, or --quiet for fewer";
constexpr std::string_view kNoBinding =
    "this version binds no rank to CPUs; start ddlrun under taskset or numactl to keep the job on some";
constexpr std::string_view kNumberOfRanks = "the number of ranks is given with -np";

constexpr OptionEntry kTable[] = {
    {kNumProc, kRanks, "-np,--num-proc,--np", "N", "start N ranks of the command; required"},
    {kOversubscribe, kRanks, "--oversubscribe", "", "allow more ranks than this machine has CPUs"},
    {kExport, kRanks, "-x", "NAME[=VALUE]",
     "set a variable for the ranks, or pass on ddlrun's own; repeatable"},
    {kWorkdir, kRanks, "--workdir", "DIR", "start the ranks in DIR (default: the current directory)"},
    {kTimeout, kRanks, "--timeout", "SECONDS", "end the job after so long; the exit code is then 124"},
    {kKillGrace, kRanks, "--kill-grace", "SECONDS",
     "how long ranks may take to end before SIGKILL (default: 5)"},

    {kStdin, kInputOutput, "--stdin", "0|all|none", "which ranks read standard input (default: rank 0)"},
    {kOutputFilename, kInputOutput, "--output-filename", "DIR",
     "also write the output to DIR/rank.R/stdout and stderr"},
    {kTagOutput, kInputOutput, "--tag-output", "",
     "put \"[rank]<stdout>:\" before every line (default if N > 1)"},
    {kNoTagOutput, kInputOutput, "--no-tag-output", "", "leave the ranks' lines as they are"},
    {kPrefixTimestamp, kInputOutput, "--prefix-output-with-timestamp,-prefix-timestamp", "",
     "put the time of writing before every line"},

    {kDryRun, kReports, "--dry-run", "", "print what would be started where, and start nothing"},
    {kJson, kReports, "--json", "", "the report, --dry-run or --check-build as one line of JSON"},
    {kVerbose, kReports, "--verbose", "", "say what is being done"},
    {kQuiet, kReports, "--quiet", "", "no notes; errors and the ranks' output stay"},

    {kCheckBuild, kAbout, "-cb,--check-build", "",
     "show what can be used on this machine, and why not the rest"},
    {kVersion, kAbout, "-v,--version", "", "show the version"},
    {kHelp, kAbout, "-h,--help", "", "show this"},

    // horovodrun 0.28.1's, not in this version.
    {kUnavailable, kHidden, "-H,--hosts", "HOSTS", kThisMachineOnly},
    {kUnavailable, kHidden, "-hostfile,--hostfile", "FILE", kThisMachineOnly},
    {kUnavailable, kHidden, "--host-discovery-script", "FILE", kThisMachineOnly},
    {kUnavailable, kHidden, "-p,--ssh-port", "PORT", kThisMachineOnly},
    {kUnavailable, kHidden, "-i,--ssh-identity-file", "FILE", kThisMachineOnly},
    {kUnavailable, kHidden, "--network-interfaces,--network-interface", "NAMES",
     "this version needs no network, its ranks share memory; leave it away"},
    {kUnavailable, kHidden, "--start-timeout", "SECONDS",
     "ranks on this machine start at once; use --timeout to limit the whole job"},
    {kUnavailable, kHidden, "--config-file", "FILE", "write the options on the command line"},
    {kUnavailable, kHidden, "--disable-cache", "", "ddlrun keeps no results of checks; leave it away"},
    {kUnavailable, kHidden, "--fusion-threshold-mb", "MB", kNoNamedTier},
    {kUnavailable, kHidden, "--cycle-time-ms", "MS", kNoNamedTier},
    {kUnavailable, kHidden, "--cache-capacity", "N", kNoNamedTier},
    {kUnavailable, kHidden, "--hierarchical-allreduce", "", kThisMachineOnly},
    {kUnavailable, kHidden, "--no-hierarchical-allreduce", "", kThisMachineOnly},
    {kUnavailable, kHidden, "--hierarchical-allgather", "", kThisMachineOnly},
    {kUnavailable, kHidden, "--no-hierarchical-allgather", "", kThisMachineOnly},
    {kUnavailable, kHidden, "--autotune", "", kNoAutotune},
    {kUnavailable, kHidden, "--no-autotune", "", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-log-file", "FILE", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-warmup-samples", "N", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-steps-per-sample", "N", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-bayes-opt-max-samples", "N", kNoAutotune},
    {kUnavailable, kHidden, "--autotune-gaussian-process-noise", "X", kNoAutotune},
    {kUnavailable, kHidden, "--min-np,--min-num-proc", "N", kNoElastic},
    {kUnavailable, kHidden, "--max-np,--max-num-proc", "N", kNoElastic},
    {kUnavailable, kHidden, "--slots-per-host,--slots", "N", kThisMachineOnly},
    {kUnavailable, kHidden, "--elastic-timeout", "SECONDS", kNoElastic},
    {kUnavailable, kHidden, "--reset-limit", "N", kNoElastic},
    {kUnavailable, kHidden, "--blacklist-cooldown-range", "MIN", kNoElastic},
    {kUnavailable, kHidden, "--timeline-filename", "FILE", kNoTimeline},
    {kUnavailable, kHidden, "--timeline-mark-cycles", "", kNoTimeline},
    {kUnavailable, kHidden, "--no-timeline-mark-cycles", "", kNoTimeline},
    {kUnavailable, kHidden, "--stall-check", "", kNoStallCheck},
    {kUnavailable, kHidden, "--no-stall-check", "", "this version never warns of stalls; leave it away"},
    {kUnavailable, kHidden, "--stall-check-warning-time-seconds", "SECONDS", kNoStallCheck},
    {kUnavailable, kHidden, "--stall-check-shutdown-time-seconds", "SECONDS", kNoStallCheck},
    {kUnavailable, kHidden, "--mpi-threads-disable", "", kNoMpi},
    {kUnavailable, kHidden, "--no-mpi-threads-disable", "", kNoMpi},
    {kUnavailable, kHidden, "--mpi-args", "ARGS", kNoMpi},
    {kUnavailable, kHidden, "--tcp", "",
     "this version needs no network, its ranks share memory; leave it away"},
    {kUnavailable, kHidden, "--binding-args", "ARGS", kNoBinding},
    {kUnavailable, kHidden, "--num-nccl-streams", "N", "this version has no GPU backend; leave it away"},
    {kUnavailable, kHidden, "--thread-affinity", "N",
     "libddl's only thread sleeps while nothing is wrong; leave it away"},
    {kUnavailable, kHidden, "--gloo-timeout-seconds", "SECONDS", kNoStallCheck},
    {kUnavailable, kHidden, "--log-level", "LEVEL", kNoLog},
    {kUnavailable, kHidden, "--log-with-timestamp,--no-log-hide-timestamp", "",
     "use --prefix-output-with-timestamp, which stamps the ranks' lines"},
    {kUnavailable, kHidden, "--log-without-timestamp,--log-hide-timestamp", "",
     "ddlrun's messages carry no time; leave it away"},
    {kUnavailable, kHidden, "--gloo", "", kNoController},
    {kUnavailable, kHidden, "--mpi", "", kNoController},
    {kUnavailable, kHidden, "--jsrun", "", kNoController},

    // What hands type that are used to mpirun, srun or torchrun.
    {kForeign, kHidden, "-n,--ntasks", "N", kNumberOfRanks},
    {kForeign, kHidden, "--nproc-per-node,--nproc_per_node", "N", kNumberOfRanks},
    {kForeign, kHidden, "--nnodes,--nodes", "N", kThisMachineOnly},
    {kForeign, kHidden, "-host,--host", "HOSTS", kThisMachineOnly},
    {kForeign, kHidden, "-wdir,--wdir,--chdir", "DIR", "the working directory is given with --workdir"},
    {kForeign, kHidden, "-bind-to,--bind-to", "WHAT", kNoBinding},
    {kForeign, kHidden, "-map-by,--map-by", "WHAT", kNoBinding},
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

}  // namespace ddl::cli
