// What a site's monitoring gets of a running job: --metrics-file, --metrics-history, --metrics-listen.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "cli/options/request.h"
#include "launcher/head/run_job.h"

namespace ddl::cli {

/// Writes the files while the job runs, and answers those who ask. One thread.
class JobMetrics {
 public:
  /// Checks that the files can be written and read. In the folders of --metrics-file and --metrics-discovery each job
  /// has a file, ddlrun-HOST-PID-...; those of this user's jobs on this host that are no more are removed: their ddlrun
  /// was killed. hostname: of this host.
  static Result<JobMetrics> plan(const MetricsTask& task, const std::string& hostname);

  /// Has the job say what is wanted; nothing, if that is nothing. What note and detail refer to outlives notices.
  void measure(launcher::Notices& notices);
  /// The job has ended: ends the history, and removes the other files, which would be read for ever. Error: the history
  /// lacks something. The destructor does it, too.
  Status end();

 private:
  struct State;
  explicit JobMetrics(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace ddl::cli
