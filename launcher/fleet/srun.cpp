#include "launcher/fleet/srun.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/command.h"
#include "base/text.h"
#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/plan/srun_command.h"
#include "launcher/protocol/link.h"

namespace ddl::launcher {

/// An srun process that was started for an agent or a group of agents.
class SrunProcess : public AgentProcess {
 public:
  /// path: of ddlrun on the nodes.
  SrunProcess(Child child, std::string path) : child_(std::move(child)), path_(std::move(path)) {}

  std::string how_it_ended() override;
  StartFailure why_not_started(std::string_view noise, std::string_view errors) override;
  void clean_up(Deadline deadline) override { child_.end(deadline); }

 private:
  Child child_;
  std::string path_;
};

namespace {

struct Advice {
  std::string_view pattern;
  std::string_view advice;
};

// In the order in which they are searched for: srun's first message is often a consequence of a later one.
constexpr std::array kAdvice{
    Advice{"error while loading shared libraries",
           "a shared library that ddlrun needs is missing there; install it, or name another ddlrun with "
           "--remote-path"},
    Advice{"Exec format error",
           "ddlrun was built for another kind of machine; install one for this node and name it with "
           "--remote-path"},
    Advice{"No such file or directory", "ddlrun was not found there; give its path with --remote-path"},
    Advice{"Permission denied", "ddlrun may not be executed there; name another one with --remote-path"},
    Advice{"Job/step already completing or completed",
           "the job has ended; request a new one with salloc or sbatch"},
    Advice{"Invalid job id", "the job has ended; request a new one with salloc or sbatch"},
    Advice{"Expired or invalid job", "the job has ended; request a new one with salloc or sbatch"},
    Advice{"Insufficient GRES",
           "the job has other GPUs there than its environment says; request them with --gpus-per-node"},
    Advice{"Invalid generic resource",
           "the job has other GPUs there than its environment says; request them with --gpus-per-node"},
    Advice{"Unable to contact slurm controller", "Slurm's controller does not answer; try again later"},
};

}  // namespace

StartFailure describe_srun_failure(const SrunAttempt& attempt) {
  std::string messages = last_error_lines(attempt.errors);
  if (messages.empty()) messages = last_error_lines(attempt.noise);
  std::string sentence =
      attempt.wait_status ? "srun started no agent" : "srun closed the connection but is still running";
  if (attempt.wait_status && WIFSIGNALED(*attempt.wait_status))
    sentence += ": it was killed by " + signal_text(WTERMSIG(*attempt.wait_status));
  if (!messages.empty()) sentence += " (" + messages + ")";
  for (const Advice& advice : kAdvice) {
    if (attempt.errors.find(advice.pattern) != std::string_view::npos)
      return {sentence + "; " + std::string(advice.advice)};
  }
  if (messages.empty() && attempt.wait_status && WIFEXITED(*attempt.wait_status))
    sentence += " and ended with " + std::to_string(WEXITSTATUS(*attempt.wait_status));
  return {sentence};
}

namespace {

constexpr auto kSrunEndDeadline = std::chrono::seconds(2);  // srun asks its controller before it ends

}  // namespace

std::string SrunProcess::how_it_ended() {
  if (!child_.wait(Deadline::after(kSrunEndDeadline)))
    return "its connection closed, but srun is still running";
  if (WIFSIGNALED(child_.wait_status()))
    return "srun was killed by " + signal_text(WTERMSIG(child_.wait_status()));
  const int code = WEXITSTATUS(child_.wait_status());
  if (code > 128) return "Slurm or somebody else has ended the agent with " + signal_text(code - 128);
  return "srun ended with " + std::to_string(code) + ": the job, its node or the agent has ended";
}

StartFailure SrunProcess::why_not_started(std::string_view noise, std::string_view errors) {
  const bool ended = child_.wait(Deadline::after(kSrunEndDeadline));
  return describe_srun_failure(
      {path_, ended ? std::optional(child_.wait_status()) : std::nullopt, noise, errors});
}

namespace {

class SrunStarter : public NodeStarter {
 public:
  SrunStarter(SlurmJob job, std::string path, const Environment& own)
      : job_(std::move(job)),
        path_(std::move(path)),
        environment_(srun_environment(own, SrunCall::kAgents)) {}

  bool forks() const override { return false; }

  Result<StartedAgent> start(const AllocatedNode& node) override {
    auto nonce = make_nonce();
    if (!nonce) return fail(nonce.error());
    auto child = start_piped(
        {.argv = srun_command(job_, node, path_, *nonce), .environment = environment_entries(environment_)});
    if (!child) {
      return fail(child.error().code(),
                  child.error().message() +
                      "; Slurm's own commands must be in PATH, or choose --launcher ssh or local");
    }
    return StartedAgent{std::move(child->out), std::move(child->in), std::move(child->err), *std::move(nonce),
                        std::make_unique<SrunProcess>(std::move(child->child), path_)};
  }

 private:
  SlurmJob job_;
  std::string path_;
  Environment environment_;
};

}  // namespace

bool has_srun(const Environment& own) {
  const auto path = own.find("PATH");
  return path != own.end() && find_in_path("srun", path->second).has_value();
}

std::unique_ptr<NodeStarter> make_srun_starter(SlurmJob job, std::string path, const Environment& own) {
  return std::make_unique<SrunStarter>(std::move(job), std::move(path), own);
}

namespace {

class SrunGroupStarter : public AgentGroupStarter {
 public:
  SrunGroupStarter(SlurmJob job, std::string path, const Environment& own)
      : job_(std::move(job)),
        path_(std::move(path)),
        environment_(srun_environment(own, SrunCall::kAgents)) {}

  Result<std::vector<StartedAgentGroup>> start(const std::vector<AllocatedNode>& nodes,
                                               const std::string& nonce) override {
    std::map<std::pair<int, int>, std::vector<std::size_t>> alike;  // by CPUs and GPUs
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto own = std::find_if(job_.nodes.begin(), job_.nodes.end(),
                                    [&](const SlurmNode& one) { return one.name == nodes[i].name; });
      alike[own == job_.nodes.end() ? std::pair(0, 0) : std::pair(own->cpus, own->gpus)].push_back(i);
    }
    std::vector<StartedAgentGroup> groups;
    for (auto& [has, members] : alike) {
      std::vector<std::string> names;
      for (const std::size_t member : members) names.push_back(nodes[member].name);
      auto child = start_piped({.argv = srun_group_command(job_, names, path_, nonce),
                                .environment = environment_entries(environment_)});
      if (!child) return fail(child.error());
      groups.push_back({std::move(members), std::move(child->in), std::move(child->out),
                        std::move(child->err),
                        std::make_unique<SrunProcess>(std::move(child->child), path_)});
    }
    return groups;
  }

 private:
  SlurmJob job_;
  std::string path_;
  Environment environment_;
};

}  // namespace

std::unique_ptr<AgentGroupStarter> make_srun_group_starter(SlurmJob job, std::string path,
                                                           const Environment& own) {
  return std::make_unique<SrunGroupStarter>(std::move(job), std::move(path), own);
}

}  // namespace ddl::launcher
