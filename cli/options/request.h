// What one valid command line requests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "affinity/output/binding_format.h"
#include "affinity/output/topology_format.h"
#include "base/environment.h"
#include "base/error.h"
#include "cli/options/help_pages.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/mpi/mpirun.h"
#include "net/address.h"
#include "report/job_record.h"
#include "report/metrics.h"
#include "templates/profile/site_profile.h"
#include "templates/script/batch_job.h"

namespace ddl::cli {

/// What --show-bind and --show-topology print.
struct BindingView {
  int local_ranks = 0;   ///< 0: only the node
  std::string topology;  ///< an XML file or hwloc's synthetic form; "": this machine, or text_files
  std::vector<std::string> text_files;  ///< recorded text, read one after the other; "-" is standard input
  affinity::BindingFormat format = affinity::BindingFormat::kTable;
  /// Only for --show-topology.
  std::optional<affinity::TopologyFormat> topology_format;
};

/// The options of --launcher mpirun, beside the job's.
struct MpiTask {
  std::string choice;             ///< how it was requested: "--mpi" or "--launcher mpirun"
  std::string mpirun = "mpirun";  ///< a name in PATH, or a path
  launcher::MpirunOptions options;
  std::vector<std::string> rank_options;  ///< passed to the ddlrun of each rank: binding, kill grace, quiet
};

/// What to do with a job script.
struct ScriptTask {
  templates::ScriptRequest request;
  std::string template_file;  ///< "" for the shipped template
  std::string script_file;    ///< "" for standard output
  bool overwrites = false;
  bool submits = false;
  bool tests_only = false;
  std::string lint_file;  ///< the script to check
};

/// What --inspect shows.
struct InspectTask {
  std::string job;       ///< pid, name or id; "": the only job there is
  bool watches = false;  ///< again and again
};

/// --timeline: InspectTask::job records a timeline, or writes it.
struct TimelineTask {
  bool starts = false;
  std::string file;  ///< "" or absolute
};

/// Where the report of a job goes, and with what it is compared.
struct ReportTask {
  std::string page;  ///< "" or absolute, and so are the others
  std::string json;
  std::string directory;  ///< of files that are named by the job
  std::shared_ptr<const report::JobRecord> baseline;
  std::shared_ptr<const report::Record> record;  ///< of kReport

  bool is_wanted() const { return !page.empty() || !json.empty() || !directory.empty(); }
};

/// --scaling: the command is run with each of these numbers of ranks.
struct ScalingTask {
  report::ScalingKind kind = report::ScalingKind::kStrong;
  std::vector<int> sizes;  ///< none: the job is run once
  int repeats = 3;         ///< of each
};

/// What a site's monitoring reads of a job.
struct MetricsTask {
  report::MetricsFormat format = report::MetricsFormat::kPrometheus;  ///< for kMetrics
  report::MetricsDetail detail = report::MetricsDetail::kAuto;
  std::string file;     ///< for kRun, as the others; "" or absolute
  std::string history;  ///< the same
  double interval_seconds = 15;
  std::optional<net::SocketAddress> listens;  ///< at this address
  std::vector<std::string> users;  ///< whose processes are answered there, beside ddlrun's own and root's
  std::string token_file;          ///< "" or absolute; its token is answered there
  std::string discovery;           ///< a folder for Prometheus's discovery of that address; "" or absolute

  bool is_wanted() const { return !file.empty() || !history.empty() || listens; }
};

enum class Action {
  kRun,
  kDryRun,
  kInspect,
  kTimeline,
  kReport,
  kMetrics,
  kTimelineView,
  kShowBind,
  kCheckBuild,
  kCheckHosts,
  kScript,
  kLint,
  kListSites,
  kShowSite,
  kExplainSite,
  kCompletion,
  kHelp,
  kVersion,
};

/// One valid command line.
struct Request {
  Action action = Action::kRun;
  std::vector<std::string> notes;  ///< sentences to print before anything is done, unless job.quiet
  bool json = false;               ///< print the report as one line of JSON
  bool probes_hosts = false;       ///< for kDryRun: ask all hosts
  std::string capability;          ///< for kCheckBuild: the key of the capability to check; "" for all
  BindingView binding_view;        ///< for kShowBind
  ScriptTask script;               ///< for kScript and kLint
  InspectTask inspect;             ///< for kInspect, kTimeline and kMetrics
  TimelineTask timeline;           ///< for kTimeline
  ScalingTask scaling;             ///< for kRun
  MetricsTask metrics;             ///< for kRun and kMetrics
  ReportTask report;               ///< for kRun and kReport, and its page for kTimelineView
  std::string timeline_file;       ///< for kTimelineView; absolute
  std::string text;  ///< what kHelp, kVersion and kCompletion print; of a site, what kShowSite prints
  MpiTask mpi;       ///< for a job with LauncherChoice::kMpirun
  std::string site;  ///< the name or file of a profile; "" for none
  std::optional<templates::SiteProfile> profile;  ///< of the site, from find_site()
  bool has_rank_order = false;                    ///< given by the user, so the site's does not apply
  launcher::JobSpec
      job;  ///< complete for kRun and kDryRun; without command and ranks for kCheckHosts; without hosts
            ///< for kScript; for the others only verbose and quiet
  launcher::Allocation
      allocation;  ///< the job's hosts; empty where there is no job, and for kCheckBuild of this machine
};

/// What the meaning of a command line depends on.
struct CommandLineContext {
  std::string current_directory;       ///< absolute; relative paths start here; "": it has been removed
  int allowed_cpus = 1;                ///< the slots of this machine
  std::string hostname = "localhost";  ///< of this machine
  /// Reads a file by the name that the user gave; "-" is standard input, to its end. Empty: no file can be read.
  std::function<Result<std::string>(const std::string& path)> read_file;
  Environment environment{};  ///< of this process: whether it runs in a Slurm job
};

}  // namespace ddl::cli
