// From the words of a command line to what the user asked for.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "base/error.h"
#include "cli/binding_view.h"
#include "cli/command_line_error.h"
#include "cli/mpi_task.h"
#include "cli/script_task.h"
#include "launcher/job/allocation.h"
#include "launcher/job/environment.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

enum class Action {
  kRun,
  kDryRun,
  kShowBind,
  kCheckBuild,
  kCheckHosts,
  kScript,
  kLint,
  kListSites,
  kShowSite,
  kHelp,
  kVersion,
};

/// One valid command line.
struct Request {
  Action action = Action::kRun;
  std::vector<std::string> notes;  ///< sentences to print before anything is done, unless job.quiet
  bool json = false;               ///< reports as one line of JSON
  bool probes_hosts = false;       ///< for kDryRun: all hosts are asked
  std::string box;                 ///< for kCheckBuild: only this one
  BindingView binding_view;        ///< for kShowBind
  ScriptTask script;               ///< for kScript, kLint, kListSites and kShowSite
  MpiTask mpi;                     ///< for a job with LauncherChoice::kMpirun
  launcher::JobSpec
      job;  ///< complete for kRun and kDryRun; without command and ranks for kCheckHosts; without hosts
            ///< for kScript; for the others only verbose and quiet
  launcher::Allocation
      allocation;  ///< the job's hosts; empty where there is no job, and for kCheckBuild of this machine
};

/// What the command line is read against.
struct CommandLineContext {
  std::string current_directory;       ///< absolute; relative directories are meant from here
  int allowed_cpus = 1;                ///< for the suggestion when -np is missing
  std::string hostname = "localhost";  ///< of this machine
  /// A file of the user's, as it was named; "-" is standard input, to its end. Empty: no file can be read.
  std::function<Result<std::string>(const std::string& path)> read_file;
  launcher::Environment environment{};  ///< of this process: whether it runs in a Slurm job
};

/// Reads the words after argv[0], then the configuration file and the hostfile that they name. Pure but for
/// context.read_file, which is called at most once for each of them.
tl::expected<Request, CommandLineError> parse_command_line(std::span<const std::string> words,
                                                           const CommandLineContext& context);

}  // namespace ddl::cli
