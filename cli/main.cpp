// ddlrun: reads the options, makes the objects, runs the action, and returns the exit code.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/environment.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "cli/reports/console.h"
#include "contract/ddlrun.h"
#include "launcher/mpi/mpirun.h"
#include "launcher/node/agent.h"
#include "launcher/node/gpu_questions.h"
#include "launcher/node/gpu_watch.h"
#include "launcher/node/node_probe.h"

using namespace ddl;

int main(int argc, char** argv) {
  cli::open_closed_standard_fds();
  // The caller may have ignored it, and then the kernel reports no child's end.
  std::signal(SIGCHLD, SIG_DFL);
  const Environment environment = process_environment();
  const cli::Console console(environment);
  // For agents, mpirun and all else that a process of ddlrun becomes or starts. cli::run() reports it.
  if (lacks_home(environment)) ::setenv("HOME", kHomeOfUnknownUser, 1);

  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  // Options that another ddlrun uses, not a user.
  if (words.size() == 2 && words[0] == contract::kAgentOption) ::_exit(launcher::run_remote_agent(words[1]));
  if (words.size() == 2 && words[0] == contract::kJoiningAgentOption)
    ::_exit(launcher::run_joining_agent(words[1]));
  if (words.size() == 2 && words[0] == contract::kAskGpusOption)
    ::_exit(launcher::print_visible_gpus(words[1]));
  if (words.size() == 2 && words[0] == contract::kWatchGpusOption) ::_exit(launcher::print_gpu_use(words[1]));
  if (words.size() > 3 && words[0] == contract::kMpiEngineOption)
    return launcher::become_mpirun({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == contract::kMpiRankOption)
    return cli::run_as_mpi_rank({words.begin() + 1, words.end()}, environment, console);
  const auto request =
      cli::parse_command_line(words, {cli::current_directory().value_or(""), CpuSet::allowed().count(),
                                      launcher::hostname(), cli::read_user_file, environment});
  if (!request) return console.refuse(request.error());
  return cli::run_action(*request, environment, console);
}
