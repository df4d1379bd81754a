// The table of ddlrun's options: the parser, --help and the suggestions for misspelt options are made from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::cli {

enum class OptionId {
  kNumProc,
  kScaling,
  kScalingKind,
  kRepeat,
  kNnodes,
  kRanksPerNode,
  kMapBy,
  kRankBy,
  kRankfile,
  kOversubscribe,
  kExport,
  kCpuOperations,
  kGpuOperations,
  kFusionThreshold,
  kFramework,
  kGloo,
  kGlooTimeout,
  kAsHorovod,
  kMca,
  kTfRoles,
  kMxnetServers,
  kWorkdir,
  kTimeout,
  kEndWith,
  kKillGrace,
  kStallWarning,
  kStallShutdown,
  kNoStallCheck,
  kBindTo,
  kCoresPerRank,
  kReserve,
  kRankOrder,
  kSmt,
  kGpusPerRank,
  kRanksPerGpu,
  kVisibleGpus,
  kMemBind,
  kReportBindings,
  kStrictBind,
  kShowBind,
  kExplainBind,
  kShowTopology,
  kFormat,
  kTopology,
  kSite,
  kTopologyText,
  kHosts,
  kHostfile,
  kHostsExclude,
  kLauncher,
  kMpi,
  kMpirun,
  kMpiArgs,
  kBindingArgs,
  kTcp,
  kSshPort,
  kSshIdentityFile,
  kSshArgs,
  kLaunchAgent,
  kSshParallel,
  kFanOut,
  kStartTimeout,
  kRemotePath,
  kNetworkInterfaces,
  kElastic,
  kMaxRestarts,
  kMinNp,
  kMaxNp,
  kSpares,
  kStateDir,
  kStateInterval,
  kPreemptionWatch,
  kDiscovery,
  kSlotsPerHost,
  kElasticTimeout,
  kElasticSettle,
  kReadyTimeout,
  kElasticUnit,
  kResetLimit,
  kCooldown,
  kSlurm,
  kNodes,
  kGpusPerNode,
  kAccount,
  kPartition,
  kQos,
  kTime,
  kJobName,
  kCpusPerTask,
  kMem,
  kMemPerCpu,
  kMemPerGpu,
  kExclusive,
  kConstraint,
  kDependency,
  kArray,
  kRequeue,
  kRequeueOn,
  kSignal,
  kOutput,
  kError,
  kMailUser,
  kMailType,
  kSbatch,
  kBeforeModules,
  kModule,
  kEasybuildPrefix,
  kEessi,
  kConda,
  kVenv,
  kSetup,
  kAfter,
  kContainer,
  kContainerBind,
  kContainerRuntime,
  kContainerOption,
  kExpand,
  kSrunOption,
  kGpuChoice,
  kGpuVendor,
  kMpiType,
  kTemplate,
  kScriptFile,
  kForce,
  kSubmit,
  kTestOnly,
  kLint,
  kListSites,
  kShowSite,
  kExplain,
  kStdin,
  kOutputFilename,
  kTimelineFile,
  kTimelineSize,
  kReport,
  kReportJson,
  kReportDir,
  kBaseline,
  kMetricsListen,
  kMetricsUsers,
  kMetricsTokenFile,
  kMetricsDiscovery,
  kMetricsFile,
  kMetricsHistory,
  kMetricsInterval,
  kMetricsDetail,
  kTagOutput,
  kNoTagOutput,
  kMergeStderr,
  kPrefixTimestamp,
  kDryRun,
  kProbe,
  kInspect,
  kTimeline,
  kReportFrom,
  kMetrics,
  kOpenMetrics,
  kTimelineView,
  kWatch,
  kJson,
  kVerbose,
  kQuiet,
  kConfigFile,
  kCheckBuild,
  kCheckCapability,
  kCheckHosts,
  kCompletion,
  kVersion,
  kHelp,
  kCount,
  // Only in foreign_options().
  kWithoutEffect,  ///< horovodrun's: requests what ddlrun does by default, or tunes what it does not have
  kUnavailable,    ///< horovodrun's: not in this version
  kForeign,        ///< another launcher's
};

/// The headings of --help, in order.
enum class OptionGroup {
  kRanks,
  kBinding,
  kHostsAndLauncher,
  kElasticJobs,
  kInputOutput,
  kScripts,
  kReports,
  kAbout
};

/// Where an option applies; bits of OptionEntry::rules.
enum OptionRule : unsigned {
  kNotWithSrun = 1,     ///< needs ddlrun's agents, which --launcher srun does not start
  kNotWithMpirun = 2,   ///< needs ddlrun's agents, which --launcher mpirun does not start
  kForMpiRank = 4,      ///< with --launcher mpirun, passed to the ddlrun of each rank
  kForScript = 8,       ///< passed to the ddlrun in a job script
  kNotInScript = 16,    ///< has no meaning in a job script, for which Slurm chooses the hosts
  kOptionalValue = 32,  ///< may have no value: the next word is its value unless that starts with a dash
  kNameAndValue = 64,   ///< NAME=VALUE, or as two words
  kRepeatable = 128,    ///< may be given several times, and in a file be a list
};

struct OptionEntry {
  OptionId id;
  std::string_view spellings;  ///< as users write them, separated by commas: "-np,--num-proc"
  std::string_view value;      ///< the name of its value in --help; "" for a flag
  std::string_view help;       ///< in foreign_options(): why it changes nothing, or what to use instead
  OptionGroup group = {};
  unsigned rules = 0;  ///< of OptionRule

  bool takes_value() const { return !value.empty(); }
  bool is_available() const { return id < OptionId::kCount; }
};

std::span<const OptionEntry> option_table();

/// The entry of option_table() or foreign_options() that has exactly this spelling, with its dashes; else null.
const OptionEntry* find_spelling(std::string_view spelling);

/// What a spelling means beside --slurm, where letters and some names are sbatch's.
struct SbatchSpelling {
  std::string_view spelling;        ///< "-t", "-w"
  OptionId id;                      ///< kTime; kSbatch for an option that is passed on
  std::string_view passed_on = {};  ///< "--nodelist", for kSbatch
};
std::span<const SbatchSpelling> sbatch_spellings();
/// null: it means there what it means everywhere.
const SbatchSpelling* find_sbatch_spelling(std::string_view spelling);

/// The entry of an available option.
const OptionEntry& entry_of(OptionId id);
/// The only spelling that the parser knows: the first with two dashes, else the first ("-x").
std::string_view canonical_spelling(const OptionEntry& entry);
/// For messages: "-np/--num-proc".
std::string display_name(const OptionEntry& entry);
/// For hints: "-np N: start N ranks of the command; required".
std::string usage_line(const OptionEntry& entry);

/// The spelling of an available option that is closest to word; nullopt if none is close.
std::optional<std::string> suggest_option(std::string_view word);

}  // namespace ddl::cli
