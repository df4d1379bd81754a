#include "launcher/head/run_job.h"

#include <csignal>
#include <optional>

#include "base/process_tree.h"
#include "launcher/head/job_start.h"
#include "launcher/head/running_job.h"
#include "launcher/process/child.h"
#include "launcher/process/end_watch.h"

namespace ddl::launcher {
namespace {

// After an agent has died, its spawner needs a moment to end the ranks; after this time the head kills them.
constexpr auto kCleanUpDeadline = std::chrono::milliseconds(1500);

/// A number that was mistyped should not end the job.
Status check_caller(pid_t pid) {
  if (pid == 0 || is_alive(pid)) return {};
  return refuse("--end-with: there is no process " + std::to_string(pid) + " on this host");
}

std::vector<int> watched_signals() {
  std::vector<int> wanted = ending_signals();
  wanted.insert(wanted.end(), {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD});
  return wanted;
}

/// Starts and runs the job. Afterwards the agents may still be there, but the loop, which alone calls what refers to this
/// function, does not run again.
Result<std::unique_ptr<RunningJob>> start_and_run(const JobContext& job,
                                                  const std::vector<NodeStarter*>& starters,
                                                  const Beside& beside) {
  JobStart start(job);
  JobPart* now = &start;
  DDL_TRY(job.fleet.start(job.allocation, starters));
  // From here on there may be threads.
  job.fleet.listen({[&] { start.on_startup_complete(); },
                    [&](int node, net::Frame&& frame) { return now->on_report(node, frame); },
                    [&](int node, const std::string& how) { now->on_agent_lost(node, how); }});
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), which OutputRouter reports
  std::signal(SIGTTIN, SIG_IGN);  // reading the terminal in the background fails instead of stopping ddlrun
  job.loop.watch_signals(watched_signals(), [&](int signal) {
    if (signal == SIGCHLD) return job.fleet.check_children();
    if (job.elastic_job == nullptr) now->on_signal(signal);
  });
  if (job.elastic_job != nullptr)
    DDL_TRY(job.elastic_job->open(job.loop, [&](int signal) { now->on_signal(signal); }));
  std::optional<EndWatch> caller;
  if (const pid_t pid = job.spec.end_with_pid; pid != 0) {
    caller.emplace(job.loop, pid, [&now, pid] { now->on_caller_ended(caller_ended_text(pid)); });
  }
  std::shared_ptr<void> guest;
  if (beside)
    guest = beside(job.loop, [&](const std::string& why) { return job.supervisor.on_hosts_changed(why); });
  DDL_ASSIGN(planner, start.run());
  if (!planner) return nullptr;
  DDL_ASSIGN(running, RunningJob::launch(job, *std::move(planner)));
  now = running.get();
  running->run();
  return running;
}

}  // namespace

Result<JobReport> run_job(const JobSpec& spec, const Allocation& allocation,
                          const Environment& head_environment, const Notices& notices, const Beside& beside,
                          MemberChannel* elastic_job) {
  DDL_TRY(check_open_files_limit());
  DDL_TRY(check_proc());
  DDL_TRY(check_caller(spec.end_with_pid));
  const auto began = std::chrono::steady_clock::now();
  EventLoop loop;
  NodeStarters starters(spec, allocation, head_environment);
  Fleet fleet(loop, starters.ssh(), starters.group_starter());
  Supervisor supervisor;
  StartTimes times;
  auto ran = start_and_run(
      {spec, allocation, head_environment, notices, loop, fleet, supervisor, times, elastic_job},
      starters.by_node(), beside);
  if (elastic_job != nullptr) elastic_job->close();
  const auto ended = std::chrono::steady_clock::now();
  std::vector<std::string> failed_hosts = fleet.failed_hosts();
  // Nothing of the job may be left when this returns, whatever happened.
  fleet.shut_down(Deadline::after(kCleanUpDeadline));
  if (!ran) return fail(std::move(ran.error()));
  JobReport report = *ran ? (*ran)->conclude() : supervisor.report();
  if (!*ran) report.run_seconds = std::chrono::duration<double>(ended - began).count();
  report.failed_hosts = std::move(failed_hosts);
  return report;
}

}  // namespace ddl::launcher
