// Reads what --launcher mpirun takes beside a job's options, and refuses what mpirun and srun cannot
// do.
#include "base/shell_words.h"
#include "cli/options/option_values.h"
#include "cli/options/readers.h"

namespace ddl::cli {

namespace {

/// How agents are started and what they do, without agents.
constexpr OptionId kBeyondMpirun[] = {
    OptionId::kReportBindings, OptionId::kStartTimeout,   OptionId::kLaunchAgent, OptionId::kSshParallel,
    OptionId::kFanOut,         OptionId::kOutputFilename, OptionId::kProbe,       OptionId::kJson,
};

/// What each rank's own ddlrun does.
constexpr OptionId kOfRanks[] = {
    OptionId::kBindTo,     OptionId::kCoresPerRank, OptionId::kReserve,     OptionId::kRankOrder,
    OptionId::kSmt,        OptionId::kGpusPerRank,  OptionId::kRanksPerGpu, OptionId::kMemBind,
    OptionId::kStrictBind, OptionId::kKillGrace,    OptionId::kStdin,
};

}  // namespace

std::string mpirun_choice(const GivenOptions& given) {
  return given.has(OptionId::kMpi) ? "--mpi" : "--launcher mpirun";
}

MpiTask read_mpi_task(const GivenOptions& given, ValueReader& values) {
  MpiTask task;
  task.choice = mpirun_choice(given);
  for (const OptionId id : kBeyondMpirun) {
    if (!given.has(id)) continue;
    values.refuse_once(
        given.origin(id) + display_name(entry_of(id)) + " is what ddlrun's agents do, and mpirun has none",
        id == OptionId::kOutputFilename ? "omit it, or pass mpirun's own with --mpi-args"
                                        : "omit it, or omit " + task.choice);
  }
  values.take(OptionId::kMpirun, not_empty, task.mpirun);
  values.take(
      OptionId::kMpiArgs, [](const std::string& text) { return split_shell_words(text); },
      task.wishes.mpi_args);
  values.take(
      OptionId::kBindingArgs, [](const std::string& text) { return split_shell_words(text); },
      task.wishes.binding_args);
  task.wishes.tcp_only = given.has(OptionId::kTcp);
  for (const OptionId id : kOfRanks) {
    const bool is_binding = id != OptionId::kKillGrace && id != OptionId::kStdin;
    if (is_binding && given.has(id)) values.exclude(OptionId::kBindingArgs, id);
    for (const GivenValue& value : given[id]) {
      task.rank_options.emplace_back(canonical_spelling(entry_of(id)));
      if (entry_of(id).takes_value()) task.rank_options.push_back(value.text);
    }
  }
  if (!task.wishes.binding_args.empty())
    task.rank_options.insert(task.rank_options.end(), {"--bind-to", "none"});
  return task;
}

namespace {

constexpr OptionId kBeyondSrun[] = {
    OptionId::kTimeout,           OptionId::kKillGrace,      OptionId::kReportBindings,
    OptionId::kStrictBind,        OptionId::kStartTimeout,   OptionId::kMemBind,
    OptionId::kNetworkInterfaces, OptionId::kOutputFilename, OptionId::kPrefixTimestamp,
};

}  // namespace

std::optional<CommandLineError> refuse_beyond_srun(const GivenOptions& given) {
  for (const OptionId id : kBeyondSrun) {
    if (!given.has(id)) continue;
    return CommandLineError{
        given.origin(id) + display_name(entry_of(id)) + " is what ddlrun does, and srun cannot",
        "omit it, or omit --launcher srun"};
  }
  return std::nullopt;
}

}  // namespace ddl::cli
