#include "launcher/fleet/srun/srun_starter.h"

#include <sys/wait.h>

#include <utility>

#include "base/path_search.h"
#include "base/text.h"
#include "launcher/fleet/greeting.h"
#include "launcher/fleet/piped_child.h"
#include "launcher/fleet/srun/srun_command.h"
#include "launcher/fleet/srun/srun_failure.h"

namespace ddl::launcher {
namespace {

constexpr auto kEndDeadline = std::chrono::seconds(2);  // srun asks its controller before it ends

class SrunProcess : public AgentProcess {
 public:
  SrunProcess(PipedChild child, std::string path) : child_(std::move(child)), path_(std::move(path)) {}

  std::string how_it_ended() override {
    if (!child_.wait(Deadline::after(kEndDeadline))) return "its connection closed, and srun goes on";
    if (WIFSIGNALED(child_.status())) return "srun was killed by " + signal_text(WTERMSIG(child_.status()));
    const int code = WEXITSTATUS(child_.status());
    if (code > 128) return "Slurm or somebody else has ended the agent with " + signal_text(code - 128);
    return "srun ended with " + std::to_string(code) + ": the job, its node or the agent has ended";
  }

  StartFailure why_not_started(std::string_view noise, std::string_view errors) override {
    const bool ended = child_.wait(Deadline::after(kEndDeadline));
    return describe_srun_failure(
        {path_, ended ? std::optional(child_.status()) : std::nullopt, noise, errors});
  }

  void clean_up(Deadline deadline) override { child_.end(deadline); }

 private:
  PipedChild child_;
  std::string path_;
};

class SrunStarter : public NodeStarter {
 public:
  SrunStarter(SlurmJob job, std::string path, const Environment& own)
      : job_(std::move(job)), path_(std::move(path)), environment_(srun_environment(own)) {}

  bool forks() const override { return false; }

  Result<StartedAgent> start(const AllocatedNode& node) override {
    auto nonce = make_nonce();
    if (!nonce) return fail(nonce.error());
    PipedChild::Streams streams;
    auto child = PipedChild::start(srun_command(job_, node, path_, *nonce), environment_, streams);
    if (!child) {
      return fail(child.error().code(),
                  child.error().message() +
                      "; Slurm's own commands must be in PATH, or choose --launcher ssh or local");
    }
    return StartedAgent{std::move(streams.out), std::move(streams.in), std::move(streams.err),
                        *std::move(nonce), std::make_unique<SrunProcess>(*std::move(child), path_)};
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

}  // namespace ddl::launcher
