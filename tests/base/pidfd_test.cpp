#include "base/process.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST_CASE("a signal to a process that is gone is no error and reaches nobody else") {
  WaitingChild child;
  auto pidfd = ddl::open_pidfd(child.pid());
  REQUIRE(pidfd);
  ::kill(child.pid(), SIGKILL);
  child.reap();
  CHECK(ddl::send_signal(pidfd->get(), SIGKILL));
}

TEST_CASE("what is no process or no pidfd is an error") {
  WaitingChild child;
  ::kill(child.pid(), SIGKILL);
  child.reap();
  const auto gone = ddl::open_pidfd(child.pid());
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code() == ddl::ErrorCode::kNotFound);
  CHECK_THAT(gone.error().message(), Catch::Contains(std::to_string(child.pid())));
  CHECK_FALSE(ddl::send_signal(-1, SIGTERM));
}
