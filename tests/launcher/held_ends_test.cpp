// Ends by SIGTERM in a job of a scheduler wait for the agent's own SIGTERM, and for a moment only.
#include "launcher/node/held_ends.h"

#include <csignal>
#include <string>

#include "launcher/loop_driver.h"
#include "support/catch.h"

using namespace ddl::launcher;
using namespace ddl::launcher::test;

namespace {

constexpr int kExitOne = 1 << 8;  // as waitpid(2) reports it

struct Ends {
  explicit Ends(bool in_scheduler_job)
      : held(loop, in_scheduler_job, [this](const message::ChildEnded& end) {
          log += std::to_string(end.rank) + " ";
          driver.check();
        }) {}
  void end(int rank, int wait_status) { held.take({rank, wait_status, {}}, ending); }
  void all_gone() {
    held.after_all([this] {
      log += "gone ";
      driver.check();
    });
  }

  EventLoop loop;
  LoopDriver driver{loop};
  std::string log;
  TerminationState ending;
  HeldEnds held;
};

}  // namespace

TEST_CASE(
    "ends by SIGTERM in a scheduler's job are reported after the agent's own SIGTERM, and AllGone after "
    "them") {
  Ends ends(true);
  ends.end(0, SIGTERM);
  ends.end(1, kExitOne);
  ends.end(2, SIGKILL);
  ends.end(3, SIGTERM);
  ends.all_gone();
  CHECK(ends.log == "1 2 ");
  ends.held.agent_was_terminated();
  CHECK(ends.log == "1 2 0 3 gone ");
  ends.end(4, SIGTERM);
  ends.all_gone();
  CHECK(ends.log == "1 2 0 3 gone 4 gone ");
}

TEST_CASE("an end by somebody else's SIGTERM in a scheduler's job is reported soon") {
  Ends ends(true);
  ends.end(0, SIGTERM);
  ends.all_gone();
  CHECK(ends.log.empty());
  ends.driver.run_until("the end of the hold", [&] { return ends.log == "0 gone "; });
  ends.end(1, SIGTERM);
  CHECK(ends.log == "0 gone ");
  ends.driver.run_until("the end of the next hold", [&] { return ends.log == "0 gone 1 "; });
}

TEST_CASE("no end is held outside a scheduler's job, or once the agent itself has asked the ranks to end") {
  Ends outside(false);
  outside.end(0, SIGTERM);
  outside.all_gone();
  CHECK(outside.log == "0 gone ");

  Ends asked(true);
  asked.ending.requested_signals.push_back(SIGTERM);
  asked.end(0, SIGTERM);
  CHECK(asked.log == "0 ");
}
