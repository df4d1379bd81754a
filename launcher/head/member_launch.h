// Starts processes of an elastic job on one host: a job of their own, whose head is a child process of this one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/head/run_job.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/link.h"
#include "launcher/protocol/member_messages.h"
#include "net/job_key.h"

namespace ddl::launcher {

/// The job's end. Lives on the loop's thread.
class MemberLaunch {
 public:
  struct Handlers {
    std::function<void(const message::MemberReport&)> on_report;
    /// Nothing more comes; the last report was LaunchEnded, unless the head was killed.
    std::function<void()> on_gone;
  };
  /// Forks, so the process must have one thread. spec, host: of the launch. allocation: of the job.
  static Result<std::unique_ptr<MemberLaunch>> start(EventLoop& loop, const JobSpec& spec,
                                                     const Allocation& allocation,
                                                     const Environment& environment, const Notices& notices,
                                                     const net::JobKey& key, Handlers handlers);
  /// Kills the head, if it has not ended. Its agent ends the processes then.
  ~MemberLaunch();
  MemberLaunch(const MemberLaunch&) = delete;
  MemberLaunch& operator=(const MemberLaunch&) = delete;

  void send(const message::MemberOrder& order);
  /// To its head, which does with it what ddlrun does.
  void signal(int signal);

 private:
  MemberLaunch(EventLoop& loop, pid_t pid, UniqueFd socket, Handlers handlers);

  pid_t pid_;
  std::unique_ptr<Link> link_;
};

}  // namespace ddl::launcher
