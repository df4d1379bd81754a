// Reads the options about frameworks: whose variables ranks get, and what each rank is for.
#include <strings.h>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "cli/options/option_values.h"
#include "cli/options/readers.h"
#include "contract/environment.h"
#include "launcher/job/allocation.h"
#include "launcher/plan/rank_environment.h"

namespace ddl::cli {

namespace {

using launcher::Framework;
using launcher::JobSpec;
using launcher::LauncherChoice;

/// 0: it was not given.
int mxnet_servers(ValueReader& values) {
  int servers = 0;
  values.take(OptionId::kMxnetServers, parse_count, servers, 1, launcher::kMaxRanks);
  return servers;
}

/// The framework to which the option belongs, unless another was chosen.
void imply(ValueReader& values, OptionId option, Framework framework, const char* name, JobSpec& job) {
  if (!values.has(option)) return;
  if (values.has(OptionId::kFramework) && job.framework != framework)
    values.refuse_once(option, display_name(entry_of(option)) + " belongs to --framework " + name,
                       "omit one of them");
  job.framework = framework;
}

/// Refuses each -x of a variable for which is_set holds.
template <class IsSet>
void refuse_exports(ValueReader& values, IsSet is_set) {
  for (const GivenValue& value : values.given()[OptionId::kExport]) {
    const std::string name = value.text.substr(0, value.text.find('='));
    if (!is_set(name)) continue;
    const Result<bool> refused = refuse(name + " is set by ddlrun for every rank");
    (void)values.value_of(OptionId::kExport, value, refused);
  }
}

/// "HOROVOD_CONTROLLER=gloo", or the other variable that asks for Gloo; "": neither does.
std::string variable_for_gloo(const JobSpec& job, const Environment& own) {
  for (const char* const name : {contract::env::kHorovodController, contract::env::kHorovodCpuOperations}) {
    const std::string value = variable_of_ranks(job, own, name);
    // As Horovod compares it.
    if (::strcasecmp(value.c_str(), "gloo") == 0) return std::string(name) + "=" + value;
  }
  return "";
}

}  // namespace

void read_framework(ValueReader& values, JobSpec& job) {
  values.take(OptionId::kFramework, parse_framework, job.framework);
  values.take(OptionId::kTfRoles, launcher::parse_tensorflow_roles, job.roles);
  (void)mxnet_servers(values);
  job.as_horovod = values.has(OptionId::kAsHorovod);
  imply(values, OptionId::kTfRoles, Framework::kTensorflow, "tensorflow", job);
  imply(values, OptionId::kMxnetServers, Framework::kMxnet, "mxnet", job);
  values.exclude(OptionId::kTfRoles, OptionId::kMxnetServers);
  refuse_exports(values, [&job](const std::string& name) {
    return launcher::is_set_for_every_rank(name, job.framework);
  });
  if (job.roles.empty()) return;
  const int tasks = launcher::num_ranks_of(job.roles);
  if (values.has(OptionId::kNumProc) && job.num_ranks != tasks)
    values.refuse_once(
        "--tf-roles has " + counted(tasks, "task") + ", and -np is " + std::to_string(job.num_ranks),
        "omit -np: each task is a rank");
  job.num_ranks = tasks;
}

void read_gloo(ValueReader& values, const Environment& own, JobSpec& job, std::vector<std::string>& notes) {
  const bool by_mpirun = job.launcher == LauncherChoice::kMpirun;
  if (by_mpirun && (job.framework == Framework::kTensorflow || job.framework == Framework::kMxnet))
    values.refuse_once(
        "the programs of this framework find each other by ports that ddlrun's agents hold, and mpirun runs "
        "without them",
        "omit " + mpirun_choice(values.given()));
  const bool has_variables = job.framework != Framework::kNone && job.framework != Framework::kMxnet;
  const bool is_asked_for = values.has(OptionId::kGloo);
  if (is_asked_for && !has_variables)
    values.refuse_once("--gloo needs the variables of Horovod, and --framework gives the ranks others",
                       "omit one of them");
  // A file for horovodrun may name Gloo: the command line takes precedence.
  if (is_asked_for && by_mpirun && values.given()[OptionId::kGloo].front().where.empty())
    values.refuse_once("--gloo and " + mpirun_choice(values.given()) + " contradict each other",
                       "omit one of them");
  const std::string variable = variable_for_gloo(job, own);
  job.serves_gloo = has_agents(job) && has_variables && (is_asked_for || !variable.empty());
  refuse_exports(values, [&job](const std::string& name) {
    return job.serves_gloo &&
           (name == contract::env::kHorovodGlooAddress || name == contract::env::kHorovodGlooPort);
  });
  if (!variable.empty() && !job.serves_gloo)
    notes.push_back(variable +
                    ": nobody serves the ranks a rendezvous here, so each rank of a program of Horovod with "
                    "Gloo would be alone; omit " +
                    (has_agents(job) ? "--framework" : "--launcher and --mpi"));
}

void complete_roles(ValueReader& values, JobSpec& job) {
  if (job.framework == Framework::kTensorflow && job.num_ranks > launcher::kMaxTensorflowTasks)
    values.refuse_once("each of " + std::to_string(job.num_ranks) +
                           " tasks of TensorFlow would get the addresses of all in TF_CONFIG",
                       "at most " + std::to_string(launcher::kMaxTensorflowTasks) + " tasks are possible");
  if (!values.status() || job.framework != Framework::kMxnet) return;
  const int workers = job.num_ranks, servers = mxnet_servers(values);
  job.roles = launcher::mxnet_roles(workers, servers > 0 ? servers : workers);
  job.num_ranks = launcher::num_ranks_of(job.roles);
}

}  // namespace ddl::cli
