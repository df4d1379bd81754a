#include "launcher/fleet/srun/srun_process.h"

#include <sys/wait.h>

#include <optional>

#include "base/text.h"
#include "launcher/fleet/srun/srun_failure.h"

namespace ddl::launcher {

namespace {

constexpr auto kSrunEndDeadline = std::chrono::seconds(2);  // srun asks its controller before it ends

}  // namespace

std::string SrunProcess::how_it_ended() {
  if (!child_.wait(Deadline::after(kSrunEndDeadline))) return "its connection closed, and srun goes on";
  if (WIFSIGNALED(child_.status())) return "srun was killed by " + signal_text(WTERMSIG(child_.status()));
  const int code = WEXITSTATUS(child_.status());
  if (code > 128) return "Slurm or somebody else has ended the agent with " + signal_text(code - 128);
  return "srun ended with " + std::to_string(code) + ": the job, its node or the agent has ended";
}

StartFailure SrunProcess::why_not_started(std::string_view noise, std::string_view errors) {
  const bool ended = child_.wait(Deadline::after(kSrunEndDeadline));
  return describe_srun_failure({path_, ended ? std::optional(child_.status()) : std::nullopt, noise, errors});
}

}  // namespace ddl::launcher
