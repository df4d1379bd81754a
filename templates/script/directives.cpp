#include "templates/script/directives.h"

#include <algorithm>
#include <string_view>

namespace ddl::templates {
namespace {

/// sbatch parts words at blanks, takes what follows a # for a comment, and knows quotes and backslashes.
std::string sbatch_quote(std::string_view value) {
  constexpr std::string_view kSpecial = " \t#'\"\\";
  if (value.find_first_of(kSpecial) == std::string_view::npos) return std::string(value);
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

class DirectiveList {
 public:
  void add(std::string_view option, std::string_view value) {
    if (value.empty()) return;
    if (value.find_first_of("\r\n") != std::string_view::npos && broken_.empty()) broken_ = option;
    list_.push_back(std::string(option) + "=" + sbatch_quote(value));
  }
  void add(std::string_view option, int value) {
    if (value > 0) list_.push_back(std::string(option) + "=" + std::to_string(value));
  }
  void add_flag(std::string_view option, bool given) {
    if (given) list_.emplace_back(option);
  }
  void add_as_it_is(const std::string& line) {
    if (line.find_first_of("\r\n") != std::string::npos && broken_.empty())
      broken_ = line.substr(0, line.find_first_of("\r\n"));
    list_.push_back(line);
  }
  Result<std::vector<std::string>> take() {
    if (!broken_.empty())
      return fail(ErrorCode::kInvalidArgument,
                  broken_ + ": a line break cannot stand in a directive of sbatch");
    return std::move(list_);
  }

 private:
  std::vector<std::string> list_;
  std::string broken_;  // the first option whose value no directive can hold
};

void add_size(DirectiveList& list, const ScriptRequest& request, const BatchJob& job,
              const SiteProfile* site) {
  list.add("--nodes", job.nodes);
  const bool by_total =
      job.tasks_per_node == 0 || (site != nullptr && site->slurm.task_request == TaskRequest::kTotal);
  if (by_total) {
    list.add("--ntasks", job.num_proc);
    if (job.tasks_per_node > 0) list.add("--mincpus", job.tasks_per_node * std::max(job.cpus_per_task, 1));
  } else {
    list.add("--ntasks-per-node", job.tasks_per_node);
  }
  if (job.gpus_per_node > 0) {
    const std::string type =
        site != nullptr && !site->slurm.gpu_type.empty() ? site->slurm.gpu_type + ":" : "";
    const std::string count = type + std::to_string(job.gpus_per_node);
    const bool is_gres = site != nullptr && site->slurm.gpu_request == GpuRequest::kGres;
    list.add(is_gres ? "--gres" : "--gpus-per-node", is_gres ? "gpu:" + count : count);
  }
  list.add("--cpus-per-task", job.cpus_per_task);
  list.add("--mem", job.memory);
  list.add("--mem-per-cpu", request.memory_per_cpu);
  list.add("--mem-per-gpu", request.memory_per_gpu);
  list.add("--time", request.time_limit);
  list.add_flag("--exclusive", request.exclusive);
}

}  // namespace

Result<std::vector<std::string>> directives_of(const ScriptRequest& request, const BatchJob& job,
                                               const SiteProfile* site) {
  DirectiveList list;
  list.add("--job-name", job.job_name);
  list.add("--account", request.account);
  list.add("--partition", job.partition);
  list.add("--qos", job.qos);
  add_size(list, request, job, site);
  list.add("--constraint", request.constraint);
  list.add("--dependency", request.dependency);
  list.add("--array", request.array);
  list.add("--output", job.output);
  list.add("--error", request.error);
  list.add_flag("--requeue", request.requeue);
  // Without it the second run would write over what the first one said.
  list.add_flag("--open-mode=append", request.requeue);
  list.add("--signal", request.signal);
  list.add("--mail-user", request.mail_user);
  list.add("--mail-type", request.mail_type);
  if (site != nullptr) {
    for (const std::string& directive : site->slurm.directives) list.add_as_it_is(directive);
  }
  for (const std::string& directive : request.directives) list.add_as_it_is(directive);
  return list.take();
}

}  // namespace ddl::templates
