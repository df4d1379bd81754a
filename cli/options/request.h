// What one valid command line asks for, and the function that reads it: argv, the configuration file
// and the hostfile become a Request.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "affinity/output/binding_format.h"
#include "affinity/output/topology_format.h"
#include "base/environment.h"
#include "base/error.h"
#include "cli/options/given_options.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/mpi/mpirun.h"
#include "templates/script/batch_job.h"

namespace ddl::cli {

/// What --show-bind and --show-topology print.
struct BindingView {
  int local_ranks = 0;   ///< 0: the node alone
  std::string topology;  ///< "" or an XML file or hwloc's synthetic form; this machine if there is no text
  std::string site;      ///< "" or the name or file of a profile, whose node it is then
  bool has_rank_order = false;          ///< given by the user, so a site's does not count
  std::vector<std::string> text_files;  ///< recorded text, read one after the other; "-" is standard input
  affinity::BindingFormat format = affinity::BindingFormat::kTable;
  /// Of --show-topology; nothing for --show-bind.
  std::optional<affinity::TopologyFormat> topology_format;
};

/// What --launcher mpirun takes beside the job.
struct MpiTask {
  std::string choice;             ///< how it was asked for: "--mpi" or "--launcher mpirun"
  std::string mpirun = "mpirun";  ///< a name in PATH, or a path
  launcher::MpirunOptions options;
  std::vector<std::string> rank_options;  ///< of ddlrun's own, which each rank's is told: binding, grace
};

/// What to do with a job script.
struct ScriptTask {
  templates::ScriptRequest request;
  std::string site;           ///< "" for none; as --site, --show-site have it
  std::string template_file;  ///< "" for the shipped frame
  std::string script_file;    ///< "" for standard output
  bool overwrites = false;
  bool submits = false;
  bool tests_only = false;
  std::string lint_file;  ///< the script that a person wrote
};

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
  std::string capability;          ///< for kCheckBuild: the key of the only one; "" for all
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
  Environment environment{};  ///< of this process: whether it runs in a Slurm job
};

/// Reads the words after argv[0], then the configuration file and the hostfile that they name. Pure but for
/// context.read_file, which is called at most once for each of them.
tl::expected<Request, CommandLineError> parse_command_line(std::span<const std::string> words,
                                                           const CommandLineContext& context);

}  // namespace ddl::cli
