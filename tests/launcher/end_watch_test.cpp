// How the head notices that the process with which its job is to end has ended.
#include "launcher/process/end_watch.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "launcher/loop_driver.h"
#include "support/catch.h"
#include "support/processes.h"

using namespace ddl;
using namespace ddl::launcher;

namespace {

/// Watches a process that is killed; false if its end is not noticed.
bool notices_end(bool with_pidfd) {
  const pid_t process = ddl::test::fork_process(ddl::test::sleep_for_ever);
  if (!with_pidfd && !ddl::test::refuse_system_call(SYS_pidfd_open, EPERM)) return true;
  EventLoop loop;
  int ends = 0;
  const EndWatch watch(loop, process, [&] {
    ++ends;
    loop.stop();
  });
  const auto limit = loop.after(std::chrono::seconds(20), [&] { loop.stop(); });
  loop.post([&] { ::kill(process, SIGKILL); });
  loop.run();  // it is a zombie then
  (void)::waitpid(process, nullptr, 0);
  return ends == 1;
}

}  // namespace

TEST_CASE("the end of a process is noticed, also where there are no pidfds") {
  CHECK(notices_end(true));
  const pid_t filtered = ddl::test::fork_process([] { ::_exit(notices_end(false) ? 0 : 1); });
  CHECK(ddl::test::reap(filtered) == 0);
}

TEST_CASE("a process that does not exist has ended") {
  const pid_t gone = ddl::test::fork_process([] {});
  (void)ddl::test::reap(gone);
  EventLoop loop;
  launcher::test::LoopDriver driver(loop);
  bool has_ended = false;
  const EndWatch watch(loop, gone, [&] {
    has_ended = true;
    driver.check();
  });
  CHECK_FALSE(has_ended);
  driver.run_until("the end", [&] { return has_ended; });
}
