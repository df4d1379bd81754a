#include "launcher/node/rank_process.h"

#include <unistd.h>

#include <csignal>

#include "contract/rank_process.h"
#include "support/catch.h"

using namespace ddl::launcher;

namespace {

// As wait(2) encodes them.
constexpr int exited(int code) { return code << 8; }
constexpr int kDumped = 0x80;

RankOutcome end(int wait_status, const TerminationState& ending = {}) {
  return rank_end(message::ChildEnded{3, wait_status, 1.5, {1.25, 0.5, 4096}}, 4711, ending);
}

}  // namespace

TEST_CASE("an exit and a death by a signal are reported with the rank's process and run time") {
  const RankOutcome exit = end(exited(7));
  CHECK(exit.rank == 3);
  CHECK(exit.pid == 4711);
  CHECK(exit.run_seconds == 1.5);
  CHECK(exit.usage == ProcessUsage{1.25, 0.5, 4096});
  CHECK(exit.kind == RankOutcome::Kind::kExited);
  CHECK(exit.exit_code == 7);
  CHECK(exit.before_end);

  const RankOutcome crash = end(SIGSEGV | kDumped);
  CHECK(crash.kind == RankOutcome::Kind::kSignalled);
  CHECK(crash.signal == SIGSEGV);
  CHECK(crash.core_dumped);
  CHECK_FALSE(crash.ended_by_us);
}

TEST_CASE(
    "a rank is ended by us if it dies by the signal that was sent to it, or by SIGKILL once that was sent") {
  CHECK(end(SIGTERM, {{SIGTERM}, false}).ended_by_us);
  CHECK_FALSE(end(SIGTERM).ended_by_us);
  CHECK(end(SIGINT, {{SIGINT, SIGTERM}, false}).ended_by_us);
  CHECK(end(SIGTERM, {{SIGINT, SIGTERM}, false}).ended_by_us);
  CHECK_FALSE(end(SIGSEGV, {{SIGTERM}, false}).ended_by_us);
  CHECK_FALSE(end(SIGKILL, {{SIGTERM}, false}).ended_by_us);
  CHECK(end(SIGKILL, {{SIGTERM}, true}).ended_by_us);
  CHECK_FALSE(end(SIGKILL, {{SIGTERM}, true}).before_end);
  CHECK_FALSE(end(exited(1), {{SIGTERM}, false}).before_end);
}
