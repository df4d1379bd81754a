#include "launcher/fleet/srun/srun_failure.h"

#include <sys/wait.h>

#include <array>

#include "base/text.h"
#include "launcher/fleet/telling_lines.h"

namespace ddl::launcher {
namespace {

struct Advice {
  std::string_view said;
  std::string_view what;
};

// In the order in which they are looked for: what srun says first is often a consequence.
constexpr std::array kAdvice{
    Advice{"error while loading shared libraries",
           "a shared library that ddlrun needs is missing there; install it, or name another ddlrun with "
           "--remote-path"},
    Advice{"No such file or directory", "ddlrun is not there; name it with --remote-path"},
    Advice{"Permission denied", "ddlrun may not be executed there; name another with --remote-path"},
    Advice{"Job/step already completing or completed",
           "the job has ended; take a new one with salloc or sbatch"},
    Advice{"Invalid job id", "the job has ended; take a new one with salloc or sbatch"},
    Advice{"Expired or invalid job", "the job has ended; take a new one with salloc or sbatch"},
    Advice{"Insufficient GRES",
           "the job has other GPUs there than its environment says; take it with --gpus-per-node"},
    Advice{"Invalid generic resource",
           "the job has other GPUs there than its environment says; take it with --gpus-per-node"},
    Advice{"Unable to contact slurm controller", "Slurm's controller does not answer; try again later"},
};

}  // namespace

StartFailure describe_srun_failure(const SrunAttempt& attempt) {
  std::string said = telling_lines(attempt.errors);
  if (said.empty()) said = telling_lines(attempt.noise);
  std::string sentence =
      attempt.wait_status ? "srun started no agent" : "srun closed the connection and goes on";
  if (attempt.wait_status && WIFSIGNALED(*attempt.wait_status))
    sentence += ": it was killed by " + signal_text(WTERMSIG(*attempt.wait_status));
  if (!said.empty()) sentence += " (" + said + ")";
  for (const Advice& advice : kAdvice) {
    if (attempt.errors.find(advice.said) != std::string_view::npos)
      return {sentence + "; " + std::string(advice.what)};
  }
  if (said.empty() && attempt.wait_status && WIFEXITED(*attempt.wait_status))
    sentence += " and ended with " + std::to_string(WEXITSTATUS(*attempt.wait_status));
  return {sentence};
}

}  // namespace ddl::launcher
