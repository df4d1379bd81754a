// A job whose ranks are launched, until nothing of it is left on its nodes and the last output is written.
#pragma once

#include <memory>

#include "base/deadline.h"
#include "launcher/head/job_context.h"
#include "launcher/head/job_planner.h"
#include "launcher/job/job_report.h"

namespace ddl::launcher {

class RunningJob : public JobPart {
 public:
  /// Plans the launch and sends it to the agents. planner: with all ports. Error: as JobPlanner::plan(); a file cannot be
  /// created. What job refers to outlives the running job.
  static Result<std::unique_ptr<RunningJob>> launch(const JobContext& job, JobPlanner planner);

  /// Runs the loop until nothing happens on the nodes any more.
  virtual void run() = 0;
  /// To be called when the agents are gone: writes the last output.
  virtual JobReport conclude() = 0;
};

}  // namespace ddl::launcher
