#include "launcher/fleet/step_starter.h"

#include <sys/wait.h>

#include <map>
#include <utility>

#include "base/command.h"
#include "base/text.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/protocol/link.h"

namespace ddl::launcher {

Error describe_step_failure(const Scheduler& scheduler, const StepAttempt& attempt) {
  std::string messages = last_error_lines(attempt.errors);
  if (messages.empty()) messages = last_error_lines(attempt.noise);
  std::string sentence =
      scheduler.starter() +
      (attempt.wait_status ? " started no agent" : " closed the connection but is still running");
  if (attempt.wait_status && WIFSIGNALED(*attempt.wait_status))
    sentence += ": it was killed by " + signal_text(WTERMSIG(*attempt.wait_status));
  if (!messages.empty()) sentence += " (" + messages + ")";
  if (const std::string advice = scheduler.advice(attempt.errors); !advice.empty())
    return {ErrorCode::kUnavailable, sentence + "; " + advice};
  if (messages.empty() && attempt.wait_status && WIFEXITED(*attempt.wait_status))
    sentence += " and ended with " + std::to_string(WEXITSTATUS(*attempt.wait_status));
  return {ErrorCode::kUnavailable, sentence};
}

namespace {

constexpr auto kStarterEndDeadline = std::chrono::seconds(2);  // srun asks its controller before it ends

/// A process that was started for an agent or a group of agents.
class StepProcess : public AgentProcess {
 public:
  StepProcess(const Scheduler& scheduler, Child child) : scheduler_(scheduler), child_(std::move(child)) {}

  std::string how_it_ended() override {
    const std::string starter = scheduler_.starter();
    if (!child_.wait(Deadline::after(kStarterEndDeadline)))
      return "its connection closed, but " + starter + " is still running";
    if (WIFSIGNALED(child_.wait_status()))
      return starter + " was killed by " + signal_text(WTERMSIG(child_.wait_status()));
    const int code = WEXITSTATUS(child_.wait_status());
    if (code > 128)
      return scheduler_.name() + " or somebody else has ended the agent with " + signal_text(code - 128);
    return starter + " ended with " + std::to_string(code) + ": the job, its node or the agent has ended";
  }

  Error why_not_started(std::string_view noise, std::string_view errors) override {
    const bool ended = child_.wait(Deadline::after(kStarterEndDeadline));
    return describe_step_failure(scheduler_,
                                 {ended ? std::optional(child_.wait_status()) : std::nullopt, noise, errors});
  }

  void clean_up(Deadline deadline) override { child_.end(deadline); }

 private:
  const Scheduler& scheduler_;
  Child child_;
};

}  // namespace

bool has_starter(const Scheduler& scheduler, const Environment& own) {
  const auto path = own.find("PATH");
  return path != own.end() && find_in_path(scheduler.starter(), path->second).has_value();
}

Result<StartedAgent> StepStarter::start(const AllocatedNode& node) {
  DDL_ASSIGN(nonce, make_nonce());
  auto child = start_piped(
      {.argv = scheduler_.agent_command(job_, {node.name}, Scheduler::AgentInput::kLink, path_, nonce),
       .environment = environment_});
  if (!child) {
    return fail(child.error().code(),
                child.error().message() + "; " + scheduler_.name() +
                    "'s own commands must be in PATH, or choose --launcher ssh or local");
  }
  return StartedAgent{std::move(child->out), std::move(child->in), std::move(child->err), std::move(nonce),
                      std::make_unique<StepProcess>(scheduler_, std::move(child->child))};
}

Result<std::vector<StartedAgentGroup>> StepStarter::start(const std::vector<AllocatedNode>& nodes,
                                                          const std::string& nonce) {
  std::map<std::pair<int, int>, std::vector<int>> alike;  // by CPUs and GPUs
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const SchedulerNode* const own = find_node(job_, nodes[i].name);
    alike[own ? std::pair(own->cpus, own->gpus) : std::pair(0, 0)].push_back(i);
  }
  std::vector<StartedAgentGroup> groups;
  for (auto& [has, members] : alike) {
    std::vector<std::string> names;
    for (const int member : members) names.push_back(nodes[member].name);
    DDL_ASSIGN(child, start_piped({.argv = scheduler_.agent_command(job_, names, Scheduler::AgentInput::kJoin,
                                                                    path_, nonce),
                                   .environment = environment_}));
    groups.push_back({std::move(members), std::move(child.in), std::move(child.out), std::move(child.err),
                      std::make_unique<StepProcess>(scheduler_, std::move(child.child))});
  }
  return groups;
}

}  // namespace ddl::launcher
