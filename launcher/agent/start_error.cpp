#include "launcher/agent/start_error.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "contract/exit_code.h"

namespace ddl::launcher {
namespace {

using Stage = message::ChildFailed::Stage;

std::string exec_failure(const std::string& command, const std::string& workdir, int error) {
  const std::string reason = std::generic_category().message(error);
  const bool has_path = command.find('/') != std::string::npos;
  if (error != ENOENT) return "cannot execute " + command + ": " + reason;
  if (!has_path)
    return "command not found: " + command + " (no such program in PATH; write ./" + command +
           " for one in " + workdir + ")";
  const std::string path = command[0] == '/' ? command : workdir + "/" + command;
  if (::access(path.c_str(), F_OK) == 0) {
    return "cannot execute " + path + ": its interpreter or dynamic loader does not exist";
  }
  return "no such file: " + path;
}

}  // namespace

void describe_start_failure(const message::ChildFailed& failure, const std::string& command,
                            const std::string& workdir, RankOutcome& outcome) {
  const std::string reason = std::generic_category().message(failure.error);
  switch (failure.stage) {
    case Stage::kFork:
      outcome.exit_code = contract::kStartFailure;
      outcome.start_error = "fork: " + reason + " (see ulimit -u and the pids limit of the cgroup)";
      return;
    case Stage::kBindCpus:
      outcome.exit_code = contract::kStartFailure;
      outcome.start_error = "binding it to its CPUs: " + reason + "; without --strict-bind it runs on others";
      return;
    case Stage::kBindMemory:
      outcome.exit_code = contract::kStartFailure;
      outcome.start_error =
          "binding its memory: " + reason + "; without --strict-bind it has any, with --mem-bind none, too";
      return;
    case Stage::kRedirect:
      outcome.exit_code = contract::kStartFailure;
      outcome.start_error = "redirecting its standard streams: " + reason;
      return;
    case Stage::kWorkdir:
      outcome.exit_code = failure.error == ENOENT || failure.error == ENOTDIR ? contract::kNotFound
                                                                              : contract::kNotExecutable;
      outcome.start_error = "working directory " + workdir + ": " + reason;
      return;
    case Stage::kExec:
      outcome.exit_code = failure.error == ENOENT || failure.error == ENOTDIR ? contract::kNotFound
                                                                              : contract::kNotExecutable;
      outcome.start_error = exec_failure(command, workdir, failure.error);
      return;
  }
}

}  // namespace ddl::launcher
