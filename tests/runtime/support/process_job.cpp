#include "runtime/support/process_job.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/deadline.h"
#include "base/process.h"
#include "runtime/src/api/c_abi.h"
#include "runtime/src/shm/shared_memory_transport.h"
#include "runtime/src/wire/tcp_transport.h"
#include "runtime/support/board_bootstrap.h"

namespace ddl::runtime::test {
namespace {

struct Child {
  UniqueFd report;
  UniqueFd pidfd;
};

[[noreturn]] void be_rank(RankPlace& place, int report, const std::function<std::string(RankPlace&)>& body) {
  std::string text;
  int code = 0;
  try {
    text = body(place);
  } catch (const std::exception& error) {
    text = error.what();
    code = 1;
  }
  (void)write_all(report, text.data(), text.size());
  // Not exit(): this process must not run the parent's atexit handlers or flush its buffers.
  ::_exit(code);
}

/// False if it has ended instead; it has not been reaped then.
bool wait_for_stop(pid_t pid) {
  siginfo_t info{};
  retry_eintr([&] { return ::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT); });
  return info.si_code == CLD_STOPPED;
}

/// Whether no thread of a process runs.
bool is_asleep(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  const auto runs = [&tasks](pid_t thread) {
    const auto text = read_file(tasks + "/" + std::to_string(thread) + "/stat");
    const auto stat = text ? parse_process_stat(*text) : std::nullopt;
    return stat && stat->state == 'R';
  };
  const std::vector<pid_t> threads = listed_pids(tasks);
  return std::none_of(threads.begin(), threads.end(), runs);
}

/// Returns when all but one rank sleep, or the deadline has passed.
void wait_for_sleep(const std::vector<RankEnd>& ranks, std::size_t but, Deadline deadline) {
  const auto all_asleep = [&] {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (rank != but && !is_asleep(ranks[rank].pid)) return false;
    }
    return true;
  };
  while (!all_asleep() && !deadline.has_passed()) ::poll(nullptr, 0, 1);
}

}  // namespace

RankPlace::RankPlace(Board& board, int rank, const ProcessJob& job, FdPair living)
    : board_(board),
      rank_(rank),
      hosts_(job.hosts),
      settings_(job.settings),
      wire_up_seconds_(job.wire_up_seconds),
      living_(std::move(living)) {}

ddl_context* RankPlace::join() {
  TransportMaker transports;
  transports.within_host = [seconds = wire_up_seconds_](const Membership&, FaultInjector& fault) {
    return std::make_unique<SharedMemoryTransport>(fault, seconds);
  };
  transports.between_hosts = [this](const Membership&, FaultInjector& fault) {
    TcpSettings tcp_settings;
    tcp_settings.interfaces = {"lo"};
    tcp_settings.job_key_fd = settings_.job_key_fd;
    tcp_settings.sockets = settings_.sockets_per_peer;
    tcp_settings.seconds = wire_up_seconds_;
    return std::make_unique<TcpTransport>(tcp_settings, fault);
  };
  settings_.network_interfaces = {"lo"};
  auto joined =
      Context::join(settings_, std::make_unique<BoardBootstrap>(board_, rank_, ++generation_, hosts_),
                    std::move(transports), FaultInjector(settings_.fault, rank_, watch_));
  if (!joined) throw std::runtime_error(joined.error().message());
  return new ddl_context{*std::move(joined), false};
}

void RankPlace::die_leaving_a_child() {
  if (::fork() == 0) {
    living_.second.reset();
    char byte;
    retry_eintr([&] { return ::read(living_.first.get(), &byte, 1); });
    ::_exit(0);
  }
  ::kill(::getpid(), SIGKILL);
  ::_exit(1);
}

std::vector<RankEnd> ProcessJob::run(const std::function<std::string(RankPlace&)>& body) const {
  Board board(ranks);
  auto living = make_pipe();
  DDL_CHECK(living.has_value(), living.error().message());
  std::vector<RankEnd> ends(static_cast<std::size_t>(ranks));
  std::vector<Child> children(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    auto pipe = make_pipe();
    DDL_CHECK(pipe.has_value(), pipe.error().message());
    const pid_t pid = ::fork();
    DDL_CHECK(pid >= 0, "fork");
    if (pid == 0) {
      for (Child& elder : children) elder = Child{};
      RankPlace place(board, rank, *this, std::move(*living));
      be_rank(place, pipe->second.get(), body);
    }
    auto pidfd = open_pidfd(pid);
    DDL_CHECK(pidfd.has_value(), pidfd.error().message());
    ends[static_cast<std::size_t>(rank)].pid = pid;
    children[static_cast<std::size_t>(rank)] = Child{std::move(pipe->first), *std::move(pidfd)};
  }

  living->second.reset();

  const Deadline deadline = Deadline::after_seconds(deadline_seconds);
  std::vector<std::size_t> order(children.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (stopped_rank) {
    const auto stopped = static_cast<std::size_t>(*stopped_rank);
    ends[stopped].was_stopped = wait_for_stop(ends[stopped].pid);
    if (victim) ::kill(ends[static_cast<std::size_t>(*victim)].pid, SIGKILL);
    if (goes_on) {
      wait_for_sleep(ends, stopped, Deadline::after(std::chrono::milliseconds(50)));
      ::kill(ends[stopped].pid, SIGCONT);
    } else {
      std::rotate(order.begin() + *stopped_rank, order.begin() + *stopped_rank + 1, order.end());
    }
  }
  for (const std::size_t i : order) {
    if (stopped_rank && !goes_on && i == order.back())
      (void)send_signal(children[i].pidfd.get(), goes_on_last ? SIGCONT : SIGKILL);
    pollfd entry{children[i].pidfd.get(), POLLIN, 0};
    if (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) == 0) {
      (void)send_signal(children[i].pidfd.get(), SIGKILL);
    }
    int status = 0;
    retry_eintr([&] { return ::waitpid(ends[i].pid, &status, 0); });
    if (WIFEXITED(status)) ends[i].exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ends[i].signal = WTERMSIG(status);
    // A report is shorter than a pipe is deep, so no child waits for this.
    std::array<char, 4096> buffer;
    for (ssize_t got; (got = ::read(children[i].report.get(), buffer.data(), buffer.size())) > 0;) {
      ends[i].report.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  return ends;
}

}  // namespace ddl::runtime::test
