#include "launcher/job/slurm/slurm_job.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"
#include "launcher/job/slurm/slurm_counts.h"

namespace ddl::launcher {
namespace {

using Variable = Environment::value_type;

/// The first of these that is there and not empty.
const Variable* first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) return &*found;
  }
  return nullptr;
}

std::optional<int> number_in(const Environment& environment, std::initializer_list<const char*> names) {
  const Variable* const variable = first_set(environment, names);
  const auto number = variable == nullptr ? std::nullopt : parse_integer(variable->second);
  if (!number || *number < 1 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

/// "8", "mi250:8", "a100:4,v100:2".
int gpus_in(std::string_view text) {
  int sum = 0;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t colon = part.rfind(':');
    const auto count = parse_integer(colon == std::string_view::npos ? part : part.substr(colon + 1));
    if (!count || *count < 0 || *count > kMaxSlots) return 0;
    sum += static_cast<int>(*count);
  }
  return sum;
}

int gpus_of(const Environment& environment, std::initializer_list<const char*> names) {
  const Variable* const variable = first_set(environment, names);
  return variable == nullptr ? 0 : gpus_in(variable->second);
}

/// One for each node from a variable that may be missing.
Result<std::vector<int>> counts_of(const Environment& environment, std::initializer_list<const char*> names,
                                   std::size_t nodes) {
  const Variable* const variable = first_set(environment, names);
  if (variable == nullptr) return std::vector<int>(nodes, 0);
  auto counts = parse_slurm_counts(variable->second, nodes);
  if (!counts) return fail(std::move(counts.error()).during(variable->first));
  if (counts->size() != nodes) {
    return fail(ErrorCode::kInvalidArgument, variable->first + ": " + launcher::quoted(variable->second) +
                                                 " is for " +
                                                 counted(static_cast<std::int64_t>(counts->size()), "node") +
                                                 ", and the job has " + std::to_string(nodes));
  }
  return counts;
}

/// GPUs of each node, as far as the user has said how many.
void add_gpus(const Environment& environment, SlurmJob& job) {
  const int each = gpus_of(environment, {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"});
  const int per_task = gpus_of(environment, {"SLURM_GPUS_PER_TASK"});
  const int total = gpus_of(environment, {"SLURM_GPUS"});
  const int nodes = static_cast<int>(job.nodes.size());
  for (SlurmNode& node : job.nodes) {
    if (each > 0) {
      node.gpus = each;
    } else if (per_task > 0 && job.num_tasks) {
      node.gpus = per_task * node.tasks;
    } else if (total % nodes == 0) {
      node.gpus = total / nodes;
    }
  }
}

template <class Of>
int sum_of(const SlurmJob& job, Of of) {
  return std::accumulate(job.nodes.begin(), job.nodes.end(), 0,
                         [&](int sum, const SlurmNode& node) { return sum + node.*of; });
}

}  // namespace

Result<std::optional<SlurmJob>> slurm_job(const Environment& environment) {
  const Variable* const id = first_set(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const Variable* const list = first_set(environment, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (id == nullptr || list == nullptr) return std::nullopt;
  if (number_in(environment, {"SLURM_STEP_NUM_TASKS"}).value_or(1) > 1) return std::nullopt;
  const auto names = parse_host_names(list->second);
  if (!names) return fail(Error(names.error()).during(list->first));
  const auto cpus = counts_of(environment, {"SLURM_JOB_CPUS_PER_NODE"}, names->size());
  if (!cpus) return fail(cpus.error());
  const auto tasks = counts_of(environment, {"SLURM_TASKS_PER_NODE"}, names->size());
  if (!tasks) return fail(tasks.error());
  SlurmJob job;
  job.id = id->second;
  job.num_tasks = number_in(environment, {"SLURM_NTASKS", "SLURM_NPROCS"});
  if (const Variable* const partition = first_set(environment, {"SLURM_JOB_PARTITION"}))
    job.partition = partition->second;
  for (std::size_t i = 0; i < names->size(); ++i)
    job.nodes.push_back({(*names)[i], (*cpus)[i], std::max((*tasks)[i], 1), 0});
  add_gpus(environment, job);
  return job;
}

std::string described(const SlurmJob& job) {
  std::vector<std::string> parts = {counted(static_cast<std::int64_t>(job.nodes.size()), "node")};
  if (job.num_tasks) parts.push_back(counted(*job.num_tasks, "task"));
  if (const int gpus = sum_of(job, &SlurmNode::gpus); gpus > 0) parts.push_back(counted(gpus, "GPU"));
  if (const int cpus = sum_of(job, &SlurmNode::cpus); cpus > 0) parts.push_back(counted(cpus, "CPU"));
  return "Slurm job " + job.id + " (" + join(parts, ", ") + ")";
}

}  // namespace ddl::launcher
