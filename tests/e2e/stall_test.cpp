// Ranks that wait for others: what ddlrun says of it, and how it ends the job for it.
#include <csignal>

#include "contract/ddlrun.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

Command stalling(std::vector<std::string> options, const std::vector<std::string>& command) {
  options.insert(options.begin(), {"-np", "3", "--oversubscribe", "--kill-grace", "0",
                                   "--stall-check-warning-time-seconds", "0.3"});
  options.insert(options.end(), command.begin(), command.end());
  return ddlrun(options);
}

TEST_CASE("ddlrun says which rank the others wait for in a call, and ends the job if it is to", "[stall]") {
  const Scratch scratch;
  Job job(scratch, stalling({"--stall-check-shutdown-time-seconds", "1"}, {program("ddl_program"), "wait"}));
  CHECK(job.wait_and_require_nothing_left() == contract::kTimeout);
  CHECK_THAT(job.err(), Contains("ddlrun: allreduce #2: 2 of 3 ranks have waited for ") &&
                            Contains(" for rank 1 (") && Contains("), which has been in user code for "));
  CHECK_THAT(job.err(), Contains("the job was ended because ranks had waited for 1 s "
                                 "(--stall-check-shutdown-time-seconds)"));
}

TEST_CASE("ddlrun says which tensor waits for which rank, also while the engine's ranks sleep", "[stall]") {
  const Scratch scratch;
  Job job(scratch, stalling({}, {program("ddl_program"), "wait_for_tensor"}));
  job.wait_for("ddlrun: tensor \"second\": 2 of 3 ranks have waited for ");
  job.wait_for("), which has been in user code for ");
  job.send(SIGTERM);
  CHECK(job.wait_and_require_nothing_left() == contract::kSignalBase + SIGTERM);
}

TEST_CASE("ddlrun names a stopped rank, also if it is not the process that ddlrun has started", "[stall]") {
  const Scratch scratch;
  Job job(scratch,
          stalling({}, {"sh", "-c",
                        "trap 'kill -9 $!; exit 1' TERM; " + program("ddl_program") + " loop & wait"}));
  job.wait_for("ready pid1=");
  job.wait_until("the pid of rank 1", [&] {
    const auto at = job.out().find("ready pid1=");
    return at != std::string::npos && job.out().find('\n', at) != std::string::npos;
  });
  const auto pid = static_cast<pid_t>(std::stol(job.out().substr(job.out().find("ready pid1=") + 11)));
  REQUIRE(::kill(pid, SIGSTOP) == 0);
  job.wait_for("(SIGSTOP)");
  CHECK_THAT(job.err(), Contains("ddlrun: allreduce #") && Contains(", pid " + std::to_string(pid) + ")") &&
                            Contains(" is stopped (SIGSTOP)"));
  job.send(SIGTERM);
  (void)job.wait_and_require_nothing_left();
}

TEST_CASE("ddlrun says nothing of a wait with --no-stall-check", "[stall]") {
  const Scratch scratch;
  Job job(scratch,
          stalling({"--no-stall-check", "-x", "DDL_TIMEOUT_SECONDS=1"}, {program("ddl_program"), "wait"}));
  job.wait_for("gave up after 1 s");
  job.send(SIGTERM);
  (void)job.wait_and_require_nothing_left();
  CHECK_THAT(job.err(), !Contains("waited for"));
}

}  // namespace
}  // namespace ddl::e2e
