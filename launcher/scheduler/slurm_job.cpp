#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>

#include "base/text.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"
#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {
namespace {

std::optional<int> positive(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

Result<std::vector<int>> parse_slurm_counts(std::string_view text, std::size_t max_nodes) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t bracket = part.find("(x");
    const auto count = positive(part.substr(0, bracket));
    const bool repeats = bracket != std::string_view::npos;
    const auto times = !repeats              ? std::optional(1)
                       : part.ends_with(')') ? positive(part.substr(bracket + 2, part.size() - bracket - 3))
                                             : std::nullopt;
    if (!count || !times) {
      return fail(ErrorCode::kInvalidArgument,
                  in_double_quotes(text) +
                      " is not a list of numbers such as \"2(x3),1\": " + in_double_quotes(part));
    }
    if (static_cast<std::size_t>(*times) > max_nodes - counts.size())
      return fail(ErrorCode::kInvalidArgument,
                  in_double_quotes(text) + " is for more than " + std::to_string(max_nodes) + " nodes");
    counts.insert(counts.end(), *times, *count);
  }
  return counts;
}

namespace {

using Variable = Environment::value_type;

constexpr std::initializer_list<const char*> kIds = {"SLURM_JOB_ID", "SLURM_JOBID"};
constexpr std::initializer_list<const char*> kLists = {"SLURM_JOB_NODELIST", "SLURM_NODELIST"};

/// The first of these variables that is set and not empty.
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
    sum += *count;
  }
  return sum;
}

int gpus_of(const Environment& environment, std::initializer_list<const char*> names) {
  const Variable* const variable = first_set(environment, names);
  return variable == nullptr ? 0 : gpus_in(variable->second);
}

/// One number for each node; zeros if the variable is missing.
Result<std::vector<int>> counts_of(const Environment& environment, std::initializer_list<const char*> names,
                                   std::size_t nodes) {
  const Variable* const variable = first_set(environment, names);
  if (variable == nullptr) return std::vector<int>(nodes, 0);
  auto counts = parse_slurm_counts(variable->second, nodes);
  if (!counts) return fail(std::move(counts.error()).during(variable->first));
  if (counts->size() != nodes) {
    return fail(ErrorCode::kInvalidArgument,
                variable->first + ": " + launcher::in_double_quotes(variable->second) + " is for " +
                    counted(counts->size(), "node") + ", but the job has " + std::to_string(nodes));
  }
  return counts;
}

/// Sets the GPUs of each node, as far as Slurm's variables state them.
void add_gpus(const Environment& environment, SchedulerJob& job) {
  const int each = gpus_of(environment, {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"});
  const int per_task = gpus_of(environment, {"SLURM_GPUS_PER_TASK"});
  const int total = gpus_of(environment, {"SLURM_GPUS"});
  const int nodes = std::ssize(job.nodes);
  for (SchedulerNode& node : job.nodes) {
    if (each > 0) {
      node.gpus = each;
    } else if (per_task > 0 && job.num_tasks) {
      node.gpus = per_task * node.tasks;
    } else if (total % nodes == 0) {
      node.gpus = total / nodes;
    }
  }
}

/// True in a step on only some of the job's nodes, such as a shell of srun -N 1 --pty in a job of several nodes.
bool is_part_of_job(const Environment& environment, std::size_t nodes) {
  const auto of_step = number_in(environment, {"SLURM_STEP_NUM_NODES"});
  return of_step && static_cast<std::size_t>(*of_step) < nodes;
}

/// The tasks of each of the job's nodes. In a step on some of the nodes the variable may describe only these. Then
/// the number of tasks that the job was asked for is not known, and each CPU counts as one task.
Result<std::vector<int>> tasks_of(const Environment& environment, const std::vector<int>& cpus) {
  if (is_part_of_job(environment, cpus.size())) {
    const auto tasks = parse_slurm_counts(value_of(environment, "SLURM_TASKS_PER_NODE"), cpus.size());
    if (!tasks || tasks->size() != cpus.size()) return cpus;
  }
  return counts_of(environment, {"SLURM_TASKS_PER_NODE"}, cpus.size());
}

/// The tasks that the job was asked for; nullopt: unknown. In a step the variable has the number of the step's own
/// tasks. One task is then the shell that ddlrun was started in, not a request for one rank, and the tasks of a
/// step on some of the nodes are not those of the job.
std::optional<int> num_tasks_of(const Environment& environment, std::size_t nodes) {
  const auto tasks = number_in(environment, {"SLURM_NTASKS", "SLURM_NPROCS"});
  const auto of_step = number_in(environment, {"SLURM_STEP_NUM_TASKS"});
  const bool is_steps = of_step && tasks == of_step;
  if (is_steps && (*of_step == 1 || is_part_of_job(environment, nodes))) return std::nullopt;
  return tasks;
}

/// Error: a heterogeneous job, whose groups have different kinds of nodes. There, a variable without the number of
/// a group describes all groups, one of them, or is missing, depending on the process.
Status check_single_group(const Environment& environment) {
  const Variable* const size = first_set(environment, {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"});
  const Variable* const first =
      first_set(environment, {"SLURM_JOB_ID_HET_GROUP_0", "SLURM_JOB_ID_PACK_GROUP_0"});
  if ((size == nullptr && first == nullptr) || (size != nullptr && size->second == "1")) return {};
  const Variable* const id = first_set(environment, kIds);
  const std::string job = id != nullptr ? id->second : first != nullptr ? first->second : "?";
  return fail(ErrorCode::kInvalidArgument,
              "Slurm job " + job + " is a heterogeneous job" +
                  (size == nullptr ? "" : " of " + size->second + " groups") +
                  ", and ddlrun starts ranks in jobs of one group only; request a "
                  "job without \":\" (in a script: without "
                  "#SBATCH hetjob), or start the ranks with srun --het-group");
}

}  // namespace

Status check_single_slurm_task(const Environment& environment) {
  const int tasks = number_in(environment, {"SLURM_STEP_NUM_TASKS"}).value_or(1);
  // Of several tasks that srun --pty starts, the first one alone has the terminal, with a shell in it.
  const bool is_shell =
      value_of(environment, "SLURM_PROCID") == "0" && first_set(environment, {"SLURM_PTY_PORT"}) != nullptr;
  if (tasks == 1 || is_shell) return {};
  const Variable* const id = first_set(environment, kIds);
  return fail(ErrorCode::kInvalidArgument,
              "this is one of " + std::to_string(tasks) + " tasks of a step of Slurm job " +
                  (id == nullptr ? "?" : id->second) +
                  ", and ddlrun in each of them would start all ranks; start ddlrun once, without srun");
}

Result<std::optional<SchedulerJob>> slurm_job(const Environment& environment) {
  DDL_TRY(check_single_group(environment));
  const Variable* const id = first_set(environment, kIds);
  const Variable* const list = first_set(environment, kLists);
  if (id == nullptr && list == nullptr &&
      first_set(environment, {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID"}) == nullptr)
    return std::nullopt;
  if (id == nullptr || list == nullptr) {
    const Variable* const there =
        first_set(environment, {"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST",
                                "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID"});
    return fail(ErrorCode::kInvalidArgument,
                there->first + "=" + there->second + " means that this is inside a Slurm job, but " +
                    (id == nullptr ? "SLURM_JOB_ID, the number of the job,"
                                   : "SLURM_JOB_NODELIST, the list of its nodes,") +
                    " is not set");
  }
  const auto names = parse_host_names(list->second);
  if (!names) return fail(Error(names.error()).during(list->first));
  DDL_ASSIGN(cpus, counts_of(environment, {"SLURM_JOB_CPUS_PER_NODE"}, names->size()));
  DDL_ASSIGN(tasks, tasks_of(environment, cpus));
  SchedulerJob job;
  job.scheduler = slurm().name();
  job.id = id->second;
  job.num_tasks = num_tasks_of(environment, names->size());
  if (const Variable* const partition = first_set(environment, {"SLURM_JOB_PARTITION"}))
    job.partition = partition->second;
  for (std::size_t i = 0; i < names->size(); ++i)
    job.nodes.push_back({(*names)[i], cpus[i], std::max(tasks[i], 1), 0});
  add_gpus(environment, job);
  return job;
}

}  // namespace ddl::launcher
