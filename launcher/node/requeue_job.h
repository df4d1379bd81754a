// What is left to do for a job that goes on when ranks fail, if the host is lost on which its ddlrun runs: its scheduler
// starts it again. Slurm does not do that by itself for a job that keeps its other nodes (--no-kill).
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "launcher/job/elastic_spec.h"

namespace ddl::launcher {

/// Whether the host answers within patience: it accepts or refuses a connection to the port. True also if its name is
/// unknown here.
bool does_host_answer(const std::string& host, const std::string& port, std::chrono::milliseconds patience);

struct RequeueSettings {
  /// More agents do not ask: of a thousand hosts the first ones suffice.
  int max_turns = 16;
  /// After it the agent before has asked, if it could, and the scheduler has sent SIGTERM to all others.
  std::chrono::milliseconds turn{10000};
  std::function<bool(const std::string& host, const std::string& port)> does_answer =
      [](const std::string& host, const std::string& port) {
        return does_host_answer(host, port, std::chrono::seconds(4));
      };
  std::function<void(const std::string& sentence)> say;  ///< by default, on standard error
};

/// To be called at the end of an agent's process, when nothing of the job is left on this host. Blocks until the turn has
/// come; SIGTERM may end the process meanwhile, because the scheduler ends the job already. Does nothing if the scheduler
/// does not answer here, because it is this host that was cut off; nor if the head's host answers, because then the head
/// is there, or somebody has ended it. Returns whether the scheduler has agreed.
bool requeue_job(const Requeue& order, const RequeueSettings& settings = {});

}  // namespace ddl::launcher
