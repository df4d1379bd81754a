// Slurm: directives as sbatch reads them, and the submission of a script by sbatch.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "templates/script/batch_system.h"

namespace ddl::templates {
namespace {

/// sbatch splits words at blanks, takes what follows a # for a comment, and knows quotes and backslashes.
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
  void add_unchanged(const std::string& line) {
    if (line.find_first_of("\r\n") != std::string::npos && broken_.empty())
      broken_ = line.substr(0, line.find_first_of("\r\n"));
    list_.push_back(line);
  }
  Result<std::vector<std::string>> take() {
    if (!broken_.empty())
      return fail(ErrorCode::kInvalidArgument,
                  broken_ + ": a directive of sbatch cannot contain a line break");
    return std::move(list_);
  }

 private:
  std::vector<std::string> list_;
  std::string broken_;  // the first option whose value no directive can hold
};

void add_size(DirectiveList& list, const ScriptRequest& request, const BatchJob& job,
              const SiteProfile* site) {
  if (job.max_nodes > 0)
    list.add("--nodes", std::to_string(job.nodes) + "-" + std::to_string(job.max_nodes));
  else
    list.add("--nodes", job.nodes);
  const bool by_total = job.tasks_per_node == 0 || (job.num_ranks > 0 && site != nullptr &&
                                                    site->slurm.task_request == TaskRequest::kTotal);
  if (by_total) {
    list.add("--ntasks", std::max(job.num_ranks, request.num_processes));
    if (job.tasks_per_node > 0) list.add("--mincpus", job.tasks_per_node * std::max(job.cpus_per_task, 1));
  } else {
    list.add("--ntasks-per-node", job.tasks_per_node);
  }
  if (job.gpus_per_node > 0) {
    const std::string count =
        (job.gpu_type.empty() ? "" : job.gpu_type + ":") + std::to_string(job.gpus_per_node);
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

/// "time" for SBATCH_TIMELIMIT. Most are named as their option.
std::string sbatch_option_of(std::string_view variable) {
  constexpr std::string_view kPrefix = "SBATCH_";
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"SBATCH_ARRAY_INX", "array"},     {"SBATCH_CPU_FREQ_REQ", "cpu-freq"}, {"SBATCH_MEM_PER_NODE", "mem"},
      {"SBATCH_REQ_SWITCH", "switches"}, {"SBATCH_TIMELIMIT", "time"},        {"SBATCH_BURST_BUFFER", "bb"},
      {"SBATCH_NO_REQUEUE", "requeue"}};
  for (const auto& [name, option] : kOthers) {
    if (name == variable) return std::string(option);
  }
  std::string option;
  for (const char c : variable.substr(kPrefix.size()))
    option += c == '_' ? '-' : (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  return option;
}

/// "account" for "#SBATCH --account=me".
std::set<std::string, std::less<>> options_in(std::string_view script) {
  constexpr std::string_view kDirective = "#SBATCH --";
  std::set<std::string, std::less<>> options;
  for (const std::string_view line : split(script, '\n')) {
    if (!line.starts_with(kDirective)) continue;
    const std::string_view rest = line.substr(kDirective.size());
    options.emplace(rest.substr(0, rest.find_first_of("= \t")));
  }
  return options;
}

class Sbatch : public BatchSystem {
 public:
  std::string command() const override { return "sbatch"; }

  Result<std::vector<std::string>> directives(const ScriptRequest& request, const BatchJob& job,
                                              const SiteProfile* site) const override {
    DirectiveList list;
    list.add("--job-name", job.job_name);
    list.add("--account", request.account);
    list.add("--partition", job.partition);
    list.add("--qos", job.qos);
    add_size(list, request, job, site);
    list.add("--constraint", job.constraint);
    list.add("--dependency", request.dependency);
    list.add("--array", request.array);
    list.add("--output", job.output);
    list.add("--error", request.error);
    list.add_flag("--no-kill", request.no_kill);
    list.add_flag("--requeue", request.requeue);
    // Without it the second run would overwrite the output of the first one.
    list.add_flag("--open-mode=append", request.requeue);
    list.add("--signal", request.signal);
    list.add("--mail-user", request.mail_user);
    list.add("--mail-type", request.mail_type);
    if (site != nullptr) {
      for (const std::string& directive : site->slurm.directives) list.add_unchanged(directive);
      if (job.nodes == 1 && job.max_nodes == 0) {
        for (const std::string& directive : site->slurm.one_node_directives) list.add_unchanged(directive);
      }
    }
    if (!job.smt_directive.empty()) list.add_unchanged(job.smt_directive);
    for (const std::string& directive : request.directives) list.add_unchanged(directive);
    return list.take();
  }

  std::vector<std::string> submit_command(Submission submission) const override {
    return {command(), submission == Submission::kReal ? "--parsable" : "--test-only"};
  }

  Environment submit_environment(const Environment& own, std::string_view script) const override {
    const auto options = options_in(script);
    Environment environment = own;
    std::erase_if(environment, [&](const auto& variable) {
      const std::string& name = variable.first;
      return name.starts_with("SBATCH_") &&
             (name == "SBATCH_WAIT" || options.contains(sbatch_option_of(name)));
    });
    return environment;
  }

  std::string job_id(std::string_view output) const override {
    return std::string(output.substr(0, output.find(';')));  // the cluster's name follows the ';'
  }
};

}  // namespace

const BatchSystem& sbatch() {
  static const Sbatch kSbatch;
  return kSbatch;
}

}  // namespace ddl::templates
