// The files of --metrics-file and --metrics-history.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "cli/options/request.h"
#include "launcher/head/run_job.h"

namespace ddl::cli {

/// Writes them while a job runs. One thread.
class MetricsFiles {
 public:
  /// Checks that they can be written. A file that is a folder gets one for each job, ddlrun-HOST-PID-....prom, where those
  /// of this user's jobs on this host that are no more are removed: their ddlrun was killed. hostname: of this host.
  static Result<MetricsFiles> plan(const MetricsTask& task, const std::string& hostname);

  /// Has the job write them; nothing is asked of it if there are none. notices must not outlive this.
  void measure(launcher::Notices& notices);

 private:
  struct State;
  explicit MetricsFiles(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// The last copy ends the history, and removes the file: it would be read for ever.
  std::shared_ptr<State> state_;
};

}  // namespace ddl::cli
