#include "launcher/scheduler/scheduler.h"

#include <algorithm>
#include <array>

#include "contract/ddlrun.h"
#include "contract/environment.h"
#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {
namespace {

class NoScheduler : public Scheduler {
 public:
  std::string name() const override { return ""; }
  std::string starter() const override { return ""; }
  std::string job_id(const Environment&) const override { return ""; }
  Result<std::optional<SchedulerJob>> find_job(const Environment&) const override { return std::nullopt; }
  Status check_single_task(const Environment&) const override { return {}; }
  std::string node_name(const Environment&) const override { return ""; }
  Environment step_variables(const SchedulerStep&) const override { return {}; }
  Environment rank_variables(const SchedulerStep&, int, int) const override { return {}; }
  std::vector<std::string> node_variables() const override { return {}; }
  bool describes_task(std::string_view) const override { return false; }
  bool selects_gpus() const override { return false; }
  std::vector<std::string> agent_command(const SchedulerJob&, const std::vector<std::string>&,
                                         AgentInput input, const std::string& path,
                                         const std::string& nonce) const override {
    return {path, agent_option(input), nonce};
  }
  Environment agent_environment(const Environment& own) const override { return own; }
  Environment mpirun_environment(const Environment& own) const override { return own; }
  Environment mpirun_variables(const SchedulerJob&, const Environment&) const override { return {}; }
  std::string command_on_part_of_node() const override { return ""; }
  std::string advice(std::string_view) const override { return ""; }
  bool is_ending(const std::string&, const Environment&) const override { return false; }
  Result<bool> may_requeue(const std::string&, const Environment&) const override { return false; }
  std::string node_port() const override { return ""; }
  Status requeue(const std::string&, const Environment&) const override {
    return fail(ErrorCode::kUnavailable, "no scheduler");
  }
};

}  // namespace

std::string agent_option(Scheduler::AgentInput input) {
  return std::string(input == Scheduler::AgentInput::kLink ? contract::kAgentOption
                                                           : contract::kJoiningAgentOption);
}

std::span<const Scheduler* const> schedulers() {
  static const NoScheduler kNone;
  static const std::array<const Scheduler*, 2> kAll = {&slurm(), &kNone};
  return kAll;
}

namespace {

/// The first that has this property, else the last one.
template <class Has>
const Scheduler& first_that(Has has) {
  const auto all = schedulers();
  return **std::find_if(all.begin(), all.end() - 1, [&](const Scheduler* one) { return has(*one); });
}

}  // namespace

const Scheduler& scheduler_of(const SchedulerJob& job) {
  return first_that([&](const Scheduler& one) { return one.name() == job.scheduler; });
}

const Scheduler& scheduler_of(const Allocation& allocation) {
  return allocation.job ? scheduler_of(*allocation.job) : no_scheduler();
}

const Scheduler& scheduler_here(const Environment& own) {
  return first_that([&](const Scheduler& one) { return !one.job_id(own).empty(); });
}

std::string job_id_here(const Environment& own) { return scheduler_here(own).job_id(own); }

bool is_of_scheduler_task(std::string_view variable) {
  const auto all = schedulers();
  return std::any_of(all.begin(), all.end(),
                     [&](const Scheduler* one) { return one->describes_task(variable); });
}

std::string scheduler_job_of_ranks(const Allocation& allocation, const Environment& own) {
  if (own.contains(contract::env::kRank)) return "";
  return allocation.job ? allocation.job->id : job_id_here(own);
}

}  // namespace ddl::launcher
