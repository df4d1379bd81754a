// The steps from given options to a Request: one function for each group of options. Each refuses invalid values.
#pragma once

#include <string>
#include <vector>

#include "affinity/plan/binding_plan.h"
#include "base/environment.h"
#include "cli/options/given_options.h"
#include "cli/options/option_values.h"
#include "cli/options/request.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

/// No node has more cores.
inline constexpr int kMaxCores = 8192;
/// No node has more GPUs.
inline constexpr int kMaxGpus = 1024;

/// --rank-by, and --map-by with what mpirun's modifiers in it stand for. After --ranks-per-node.
void read_map_by(ValueReader& values, launcher::JobSpec& job);
/// The file that --rankfile or --map-by names, and the number of ranks that it places. Refuses options that place or bind
/// ranks otherwise. After -np, --tf-roles and --map-by.
void read_rankfile(ValueReader& values, const CommandLineContext& context, launcher::JobSpec& job);

/// --scaling and what belongs to it; the job has the largest number of ranks. Before -np, and check_scaling() when the job
/// has been read.
void read_scaling(ValueReader& values, Request& request);
void check_scaling(ValueReader& values, const Request& request);

/// All but BindingPolicy::oversubscribe. After --map-by.
void read_binding(ValueReader& values, affinity::BindingPolicy& policy);

/// --framework, --as-horovod and the roles of ranks, with the number of ranks that --tf-roles implies. Refuses -x of variables that
/// ranks get anyway. After -np and -x.
void read_framework(ValueReader& values, launcher::JobSpec& job);
/// Whether ranks get a rendezvous for Gloo, also if Horovod's own variables ask for it. Refuses frameworks that the
/// launcher cannot serve; adds a note if nobody serves Gloo. After the launcher.
void read_gloo(ValueReader& values, const Environment& own, launcher::JobSpec& job,
               std::vector<std::string>& notes);
/// What depends on the number of ranks: adds MXNet's scheduler and servers to them.
void complete_roles(ValueReader& values, launcher::JobSpec& job);

/// The options of elastic jobs. min_hosts and max_hosts: of --nnodes, 0 if it was not given. After read_gloo().
void read_elastic(ValueReader& values, const CommandLineContext& context, launcher::JobSpec& job,
                  int min_hosts, int max_hosts, std::vector<std::string>& notes);
/// The number of ranks with which an elastic job starts and goes on, and the slots of this machine if no host is named.
/// After the number of ranks.
void complete_elastic(ValueReader& values, const CommandLineContext& context,
                      launcher::Allocation& allocation, launcher::JobSpec& job);

/// The option by which the user requested mpirun. Pure.
std::string mpirun_choice(const GivenOptions& given);
/// By -x, or else from ddlrun's own environment; "" if it has none. Pure.
std::string variable_of_ranks(const launcher::JobSpec& job, const Environment& own, const char* name);

/// Refuses the first option that needs ddlrun's agents, which --launcher srun does not start; not the option that is
/// allowed. Pure.
Status refuse_beyond_srun(const GivenOptions& given, OptionId allowed = OptionId::kCount);

/// Refuses the first option on the command line that belongs to --slurm. A configuration file may contain them. Pure.
Status refuse_script_options(const GivenOptions& given);

/// What the readers of actions read.
struct CommandLine {
  const GivenOptions& given;  ///< with those of the configuration file
  const SplitArgv& split;     ///< as typed, with the command
  const CommandLineContext& context;
};

/// Fills what the action needs of a request whose action is set. Error: the first invalid value, options that
/// contradict each other, or one that is missing.
using ReadOptions = Status(Request& request, const CommandLine& line);

/// Reads the options of a job by the reader, which keeps what is wrong. As read_job.
Status read_job_by(ValueReader& values, Request& request, const CommandLine& line);

ReadOptions read_job;       ///< the job and its allocation; reads the hostfile if one was given
ReadOptions read_job_here;  ///< the same for actions without a script: typed options of --slurm are refused
ReadOptions read_script;    ///< --slurm: the job and request.script
ReadOptions read_check_build;   ///< --check-build, --check-box
ReadOptions read_binding_view;  ///< --show-bind, --explain-bind, --show-topology; and the policy of the job
ReadOptions read_lint;          ///< --lint, --show-site, --explain
ReadOptions read_inspection;    ///< --inspect
ReadOptions read_metrics;       ///< --metrics
/// The options of a job that say what a site's monitoring gets of it.
void read_metrics_of_job(ValueReader& values, const std::string& here, MetricsTask& metrics);
ReadOptions read_report_files;  ///< of a job: --report and --metrics-file, and what belongs to them
ReadOptions read_report;        ///< --report-from
ReadOptions read_timeline;      ///< --timeline; the command is the name of the job
ReadOptions read_help;          ///< --help
ReadOptions read_version;       ///< --version
ReadOptions read_completion;    ///< --completion

/// --timeline-view
ReadOptions read_timeline_view;

}  // namespace ddl::cli
