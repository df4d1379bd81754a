// Starts processes of an elastic job on one host: a job of their own, whose head is a child process of this one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

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

/// What a launch is to do for a job: to start processes in these slots of a host. labels: of their output, for each slot
/// of the host. places: JobSpec::first_placements. generation: the next one. Pure.
JobSpec launch_spec(const JobSpec& job, int generation, std::vector<int> slots, std::vector<int> labels,
                    std::vector<RankPlacement> places = {});

/// The job's end. Lives on the loop's thread.
class MemberLaunch {
 public:
  struct Handlers {
    std::function<void(const message::MemberReport&)> on_report;
    /// Nothing more comes; the last report was LaunchEnded, unless the head was killed.
    std::function<void()> on_gone;
  };
  /// The job that a launch is part of.
  struct Job {
    std::string id;
    net::JobKey key;
  };
  /// Forks, so the process must have one thread. spec, allocation: of the launch.
  static Result<std::unique_ptr<MemberLaunch>> start(EventLoop& loop, const JobSpec& spec,
                                                     const Allocation& allocation,
                                                     const Environment& environment, const Notices& notices,
                                                     const Job& job, Handlers handlers);
  /// Kills the head, if it has not ended. Its agent ends the processes then.
  ~MemberLaunch();
  MemberLaunch(const MemberLaunch&) = delete;
  MemberLaunch& operator=(const MemberLaunch&) = delete;

  void send(const message::MemberOrder& order);
  /// Its head has got SIGSTOP or the like.
  bool is_stopped() const;
  /// Its agent ends the processes then, and on_gone follows.
  void kill() const;
  /// To its head, which does with it what ddlrun does.
  void signal(int signal);

 private:
  MemberLaunch(EventLoop& loop, pid_t pid, UniqueFd socket, Handlers handlers);

  pid_t pid_;
  std::unique_ptr<Link> link_;
};

}  // namespace ddl::launcher
