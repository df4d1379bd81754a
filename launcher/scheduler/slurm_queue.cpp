#include <algorithm>

#include "base/text.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"
#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {
namespace {

constexpr std::size_t kFields = 5;

/// "gres/gpu:2", "gres:gpu:a100:2(S:0-1)", with others behind commas: 2; 0: none.
int gpus_of_resources(std::string_view resources) {
  for (std::string_view one : split(resources, ',')) {
    if (one.starts_with("gres/") || one.starts_with("gres:")) one.remove_prefix(5);
    if (one != "gpu" && !one.starts_with("gpu:") && !one.starts_with("gpu=")) continue;
    one = one.substr(0, one.find('('));
    const auto count = parse_integer(one.substr(one.find_last_of(":=") + 1));
    return count && *count > 0 && *count < kMaxRanks ? static_cast<int>(*count) : 1;
  }
  return 0;
}

Result<SchedulerJob> job_of(std::string_view line) {
  const auto refused = [&](const std::string& why) {
    return fail(ErrorCode::kInvalidArgument,
                "squeue prints a line that is no job, " + in_double_quotes(line) + ": " + why);
  };
  const std::vector<std::string_view> fields = split(line, '|');
  if (fields.size() != kFields) return refused("it has not " + std::to_string(kFields) + " fields");
  const auto nodes = parse_integer(fields[1]), cpus = parse_integer(fields[2]);
  if (fields[0].empty() || !nodes || *nodes < 1 || !cpus) return refused("a number is missing");
  const auto names = parse_host_names(fields[4]);
  if (!names) return refused(names.error().message());
  SchedulerJob job;
  job.scheduler = slurm().name();
  job.id = fields[0];
  const int cpus_of_node = *cpus % *nodes == 0 ? static_cast<int>(*cpus / *nodes) : 0;
  for (const std::string& name : *names)
    job.nodes.push_back({name, cpus_of_node, std::max(cpus_of_node, 1), gpus_of_resources(fields[3])});
  return job;
}

}  // namespace

Command squeue_of_jobs(const std::string& name) {
  Command command;
  command.argv = {"squeue",           "--me",           "--noheader",
                  "--states=RUNNING", "--name=" + name, "--format=%A|%D|%C|%b|%N"};
  Environment environment = process_environment();
  std::erase_if(environment, [](const auto& variable) { return variable.first.starts_with("SQUEUE_"); });
  command.environment = environment_entries(environment);
  return command;
}

Result<std::vector<SchedulerJob>> parse_slurm_jobs(std::string_view text) {
  std::vector<SchedulerJob> jobs;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    DDL_ASSIGN(job, job_of(trim(line)));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace ddl::launcher
