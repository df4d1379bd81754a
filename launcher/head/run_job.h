// Runs a job: from a JobSpec to a JobReport.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/head/metrics_exporter.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_report.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

class MemberChannel;

/// Sentences for the user while the job runs, each without a newline.
struct Notices {
  std::function<void(const std::string&)> note;    ///< worth a line unless --quiet
  std::function<void(const std::string&)> detail;  ///< only with --verbose
  /// What ddlrun waits for, called whenever the text changes; "" when the wait is over. For a terminal's last line.
  /// The function may be empty.
  std::function<void(const std::string&)> progress;
  MetricsExport metrics{};
};

/// What goes on beside a job. Called on the job's thread when its agents begin to start; what it returns lives until the
/// job is over, and may use the loop. on_hosts_changed ends the job with EndReason::kHostsChanged for this sentence. It
/// returns false if the job goes on: its ranks have not been started, or have begun to end by themselves.
using Beside = std::function<std::shared_ptr<void>(
    EventLoop& loop, std::function<bool(const std::string& why)> on_hosts_changed)>;

/// Starts the job on the nodes of the allocation, supervises it and returns when nothing of it is left.
/// Uses standard input and output; installs signal handling for its duration; must be called while the
/// process has one thread and with descriptors 0, 1 and 2 open.
/// elastic_job: the job of which this one is a launch; null: none.
/// Error: the job could not be started (more ranks than slots, no agent); nothing is left then either.
Result<JobReport> run_job(const JobSpec& spec, const Allocation& allocation,
                          const Environment& head_environment, const Notices& notices,
                          const Beside& beside = nullptr, MemberChannel* elastic_job = nullptr);

}  // namespace ddl::launcher
