#include "launcher/head/member_launch.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/process.h"
#include "launcher/head/member_channel.h"
#include "launcher/process/child.h"
#include "launcher/protocol/codec.h"

namespace ddl::launcher {
namespace {

message::LaunchEnded end_of(const Result<JobReport>& report) {
  message::LaunchEnded end;
  if (!report) {
    end.reason = static_cast<int>(EndReason::kStartFailed);
    end.exit_code = contract::kStartFailure;
    end.message = report.error().message();
    return end;
  }
  end.reason = static_cast<int>(report->reason);
  end.exit_code = report->exit_code;
  end.first_failure = report->first_failure.value_or(-1);
  end.message = report->message;
  end.hint = report->hint;
  end.signal = report->signal;
  end.is_host_lost = !report->failed_hosts.empty();
  return end;
}

/// What the child does.
[[noreturn]] void run_launch(pid_t parent, UniqueFd socket, const std::string& job_id, UniqueFd key_fd,
                             const JobSpec& spec, const Allocation& allocation,
                             const Environment& environment, const Notices& notices) {
  // ^C and ^Z are for the job, which passes them on.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // until MemberChannel::open()
  if (::getppid() != parent) ::_exit(1);
  close_all_fds_but(socket.get(), key_fd.get());
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  {
    auto key = net::JobKey::from_memfd(key_fd.get());
    if (!key) {
      std::fprintf(stderr, "ddlrun: the job's key: %s\n", key.error().message().c_str());
      ::_exit(1);
    }
    key_fd.reset();
    MemberChannel channel(std::move(socket), job_id, *std::move(key));
    const auto report = run_job(spec, allocation, environment, notices, nullptr, &channel);
    channel.conclude(end_of(report));
  }
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

JobSpec launch_spec(const JobSpec& job, int generation, std::vector<int> slots, std::vector<int> labels,
                    std::vector<RankPlacement> places) {
  JobSpec spec = job;
  spec.num_ranks = static_cast<int>(std::ssize(labels));
  spec.started_ranks = std::move(slots);
  spec.output_labels = std::move(labels);
  spec.first_placements = std::move(places);
  spec.generation.generation = generation;
  spec.ranks_per_node = 0;
  spec.framework = Framework::kNone;  // its variables name the ranks, which change
  // The job itself has these.
  spec.stdin_target = StdinTarget::kNone;
  // Each launch records a part of it.
  spec.timeline_bytes = job.timeline_bytes * spec.num_ranks / std::max(job.num_ranks, spec.num_ranks);
  spec.timeout_seconds = 0;
  spec.end_with_pid = 0;
  return spec;
}

Result<std::unique_ptr<MemberLaunch>> MemberLaunch::start(EventLoop& loop, const JobSpec& spec,
                                                          const Allocation& allocation,
                                                          const Environment& environment,
                                                          const Notices& notices, const Job& job,
                                                          Handlers handlers) {
  DDL_ASSIGN(sockets, make_socket_pair(SOCK_STREAM));
  DDL_ASSIGN(key_fd, job.key.to_memfd());
  std::fflush(nullptr);
  // Not by Child::start(): it executes no program, it is a function of this one.
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0)
    run_launch(parent, std::move(sockets.second), job.id, std::move(key_fd), spec, allocation, environment,
               notices);
  return std::unique_ptr<MemberLaunch>(
      new MemberLaunch(loop, pid, std::move(sockets.first), std::move(handlers)));
}

MemberLaunch::MemberLaunch(EventLoop& loop, pid_t pid, UniqueFd socket, Handlers handlers)
    : pid_(pid), link_(make_stream_link(loop, std::move(socket))) {
  link_->start({[on_report = std::move(handlers.on_report)](const net::Frame& frame) {
                  if (const auto report = message::decode<message::MemberReport>(frame)) on_report(*report);
                },
                [on_gone = std::move(handlers.on_gone)](const std::string&) { on_gone(); }});
}

MemberLaunch::~MemberLaunch() {
  ::kill(pid_, SIGKILL);  // not reaped yet, so it is still that process
  retry_eintr([&] { return ::waitpid(pid_, nullptr, 0); });
}

bool MemberLaunch::is_stopped() const {
  const auto stat = read_process_stat(pid_);
  return stat && stat->state == 'T';
}

void MemberLaunch::kill() const { ::kill(pid_, SIGKILL); }

void MemberLaunch::send(const message::MemberOrder& order) { message::send(*link_, order); }

void MemberLaunch::signal(int signal) {
  if (signal == SIGCONT) ::kill(pid_, SIGCONT);  // it may be stopped
  send(message::Signal{signal});
  link_->flush();  // this process may stop now
}

}  // namespace ddl::launcher
