// Every option of ddlrun, once: the parser, --help and the suggestions for misspelt options are made from this table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::cli {

enum class OptionId {
  kNumProc,
  kRanksPerNode,
  kMapBy,
  kOversubscribe,
  kExport,
  kCpuOperations,
  kWorkdir,
  kTimeout,
  kKillGrace,
  kBindTo,
  kCoresPerRank,
  kReserve,
  kRankOrder,
  kSmt,
  kGpusPerRank,
  kRanksPerGpu,
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
  kSlurm,
  kNodes,
  kGpusPerNode,
  kAccount,
  kPartition,
  kQos,
  kTime,
  kJobName,
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
  kModule,
  kEasybuildPrefix,
  kEessi,
  kConda,
  kVenv,
  kSetup,
  kContainer,
  kContainerBind,
  kContainerRuntime,
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
  kStdin,
  kOutputFilename,
  kTagOutput,
  kNoTagOutput,
  kPrefixTimestamp,
  kDryRun,
  kProbe,
  kJson,
  kVerbose,
  kQuiet,
  kConfigFile,
  kCheckBuild,
  kCheckCapability,
  kCheckHosts,
  kVersion,
  kHelp,
  kCount,
  // In foreign_options() alone.
  kWithoutEffect,  ///< horovodrun's: asks for what ddlrun does anyway
  kUnavailable,    ///< horovodrun's: not in this version
  kForeign,        ///< another launcher's
};

/// The headings of --help, in order.
enum class OptionGroup { kRanks, kBinding, kPlaces, kInputOutput, kScripts, kReports, kAbout };

/// What else is to be known of an option; bits of OptionEntry::rules.
enum OptionRule : unsigned {
  kNotWithSrun = 1,    ///< needs ddlrun's agents, which --launcher srun does without
  kNotWithMpirun = 2,  ///< needs ddlrun's agents, which --launcher mpirun does without
  kForMpiRank = 4,     ///< with --launcher mpirun, the ddlrun of each rank gets it
  kForScript = 8,      ///< the ddlrun in a job script gets it
  kNotInScript = 16,   ///< it has no meaning in a job script, for which Slurm chooses the hosts
};

struct OptionEntry {
  OptionId id;
  std::string_view spellings;  ///< as people write them, separated by commas: "-np,--num-proc"
  std::string_view value;      ///< what --help calls its value; "" for a flag
  std::string_view help;       ///< of a foreign option: why it changes nothing, or what to use instead
  OptionGroup group = {};
  unsigned rules = 0;  ///< of OptionRule

  bool takes_value() const { return !value.empty(); }
  bool is_available() const { return id < OptionId::kCount; }
};

std::span<const OptionEntry> option_table();

/// The entry of option_table() or foreign_options() that has this exact spelling, dashes included; null if there is none.
const OptionEntry* find_spelling(std::string_view spelling);
/// The entry of an available option.
const OptionEntry& entry_of(OptionId id);
/// The one spelling that the parser knows: the first with two dashes, or the only one there is ("-x").
std::string_view canonical_spelling(const OptionEntry& entry);
/// For messages: "-np/--num-proc".
std::string display_name(const OptionEntry& entry);
/// For hints: "-np N: start N ranks of the command; required".
std::string usage_line(const OptionEntry& entry);

/// The available option whose spelling is closest to word, as it is spelt; nullopt if none is close.
std::optional<std::string> suggest_option(std::string_view word);

/// Usage, the options by group, what exit codes mean, and examples. At most 100 columns wide. Pure.
std::string help_text();
/// "ddlrun 0.2.0\n"
std::string version_text();

}  // namespace ddl::cli
