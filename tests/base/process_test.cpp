#include "base/process.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "support/catch.h"

namespace {

/// A child that waits for a signal; killed and reaped at the end of the scope.
class WaitingChild {
 public:
  WaitingChild() : pid_(::fork()) {
    if (pid_ == 0) {
      std::signal(SIGTERM, SIG_DFL);  // Not Catch2's handler.
      for (;;) ::pause();
    }
  }
  ~WaitingChild() {
    if (reaped_) return;
    ::kill(pid_, SIGKILL);
    reap();
  }
  pid_t pid() const { return pid_; }
  int reap() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    reaped_ = true;
    return status;
  }

 private:
  pid_t pid_;
  bool reaped_ = false;
};

}  // namespace

TEST_CASE("a pidfd becomes readable when the process ends, before it is reaped") {
  WaitingChild child;
  auto pidfd = ddl::open_pidfd(child.pid());
  REQUIRE(pidfd);
  CHECK_FALSE(ddl::has_ended(pidfd->get()));
  REQUIRE(ddl::send_signal(pidfd->get(), SIGKILL));

  pollfd entry{pidfd->get(), POLLIN, 0};
  REQUIRE(::poll(&entry, 1, 10'000) == 1);
  CHECK(ddl::has_ended(pidfd->get()));
  const int status = child.reap();
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  CHECK(ddl::has_ended(pidfd->get()));
}

TEST_CASE("a signal to a process that is gone is not an error and reaches no other process") {
  WaitingChild child;
  auto pidfd = ddl::open_pidfd(child.pid());
  REQUIRE(pidfd);
  ::kill(child.pid(), SIGKILL);
  child.reap();
  CHECK(ddl::send_signal(pidfd->get(), SIGKILL));
}

TEST_CASE("a pid without a process, and a descriptor that is not a pidfd, are errors") {
  WaitingChild child;
  ::kill(child.pid(), SIGKILL);
  child.reap();
  const auto gone = ddl::open_pidfd(child.pid());
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code() == ddl::ErrorCode::kNotFound);
  CHECK_THAT(gone.error().message(), Catch::Contains(std::to_string(child.pid())));
  CHECK_FALSE(ddl::send_signal(-1, SIGTERM));
}

TEST_CASE("/proc/PID/stat is read whatever the name of the process") {
  const auto stat = ddl::parse_process_stat(
      "71 (odd) R 1 (name) S 7 71 71 0 -1 4194304 90 10 0 0 150 50 300 100 20 0 1 0 4711 2461696 200 0\n");
  REQUIRE(stat);
  CHECK(stat->pid == 71);
  CHECK(stat->name == "odd) R 1 (name");
  CHECK(stat->state == 'S');
  CHECK(stat->parent == 7);
  CHECK(stat->num_threads == 1);
  CHECK(stat->start_time == 4711);
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  CHECK(stat->cpu_seconds == Approx(200 / ticks));
  CHECK(stat->reaped_cpu_seconds == Approx(400 / ticks));
  CHECK(stat->resident_bytes == 200 * ::sysconf(_SC_PAGESIZE));
  CHECK(stat->is_alive());
  CHECK_FALSE(stat->is_stopped());
  for (const char* text : {"", "71", "71 (name", "71 (name)", "71 (name) ", ")(", "71 (name) S 7 71\n"}) {
    CAPTURE(text);
    CHECK_FALSE(ddl::parse_process_stat(text));
  }
}

TEST_CASE("a process is stopped between SIGSTOP and its end, and a zombie is not alive") {
  WaitingChild child;
  const auto waiting = ddl::read_process_stat(child.pid());
  REQUIRE(waiting);
  CHECK(waiting->pid == child.pid());
  CHECK(waiting->parent == ::getpid());
  CHECK_FALSE(waiting->is_stopped());
  ::kill(child.pid(), SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(child.pid(), &status, WUNTRACED) == child.pid());
  CHECK(ddl::read_process_stat(child.pid())->is_stopped());
  const auto listed = ddl::listed_pids();
  CHECK(std::find(listed.begin(), listed.end(), child.pid()) != listed.end());

  ::kill(child.pid(), SIGKILL);
  REQUIRE(ddl::wait_for_end(child.pid(), ddl::Deadline::after(std::chrono::seconds(10))));
  CHECK_FALSE(ddl::read_process_stat(child.pid())->is_alive());
  child.reap();
  CHECK_FALSE(ddl::read_process_stat(child.pid()));
}
