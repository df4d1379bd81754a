// libddl programs under ddlrun.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "base/process.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "net/tcp.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

Command ddl_program(int size, const std::string& what) {
  return ddlrun(
      {"-np", std::to_string(size), "--oversubscribe", "--tag-output", program("ddl_program"), what});
}

TEST_CASE("libddl ranks connect through PMIx and average, also if there are more ranks than CPUs",
          "[libddl]") {
  for (const int size : {1, 2, 4, 8}) {
    CAPTURE(size);
    const Scratch scratch;
    Job job(scratch, ddl_program(size, "sum"));
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (int rank = 0; rank < size; ++rank) {
      for (const std::string round : {"0", "1"}) {
        const std::string self = std::to_string(rank), all = std::to_string(size);
        CHECK_THAT(job.out(),
                   Contains("[" + self + "]<stdout>:round " + round + ": ddl rank " + self + " of " + all +
                            ", local " + self + " of " + all + ", by pmix: 0 wrong sums\n"));
      }
    }
  }
}

TEST_CASE("a rank that cannot connect to its PMIx server ends the job, and does not fall back to PMI-1",
          "[libddl]") {
  const Scratch scratch;
  const std::string nowhere =
      "for n in $(env | grep ^PMIX_SERVER_URI | cut -d= -f1); do export $n='x.0;tcp4://127.0.0.1:1'; done";
  Job job(scratch,
          ddlrun({"-np", "3", "--oversubscribe", "sh", "-c",
                  "if test $RANK = 1; then " + nowhere + "; fi; exec " + program("ddl_program") + " sum"}));
  CHECK(job.wait_and_require_nothing_left() == 1);
  CHECK_THAT(job.out(), Contains("[1]<stdout>:init: bootstrap: bootstrap pmix: PMIx_Init: ") &&
                            Contains("; the launcher has promised PMIx to all ranks.") &&
                            !Contains("by pmi"));
}

TEST_CASE("a second libddl in the process is refused by a sentence that names both files", "[libddl]") {
  const Scratch scratch;
  const std::string second = scratch.path() + "/libddl.so.0";
  std::filesystem::copy_file(DDL_E2E_LIBDDL, second);
  Command command = ddlrun({"-np", "1", program("two_libddl"), second});
  // AddressSanitizer itself would end a process that has one variable twice.
  command.environment["ASAN_OPTIONS"] = "detect_odr_violation=0";
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 1);
  for (const std::string which : {"first", "second"})
    CHECK_THAT(job.out(), Contains(which + ": invalid argument: this process has loaded two libddl, "));
  const std::string version = std::string(" (") + contract::kVersion + ")";
  CHECK_THAT(job.out(), Contains("/libddl.so.0" + version + " and " + second + version));
}

TEST_CASE("ddl_init fails after its timeout if a rank does not call it", "[libddl]") {
  const Scratch scratch;
  // Without the module for PMIx, because PMIx timeouts are whole seconds.
  Job job(scratch,
          ddlrun({"-np", "2", "--oversubscribe", "-x", "DDL_START_TIMEOUT_SECONDS=0.01", "-x",
                  "DDL_MODULE_DIR=" + scratch.path(), "sh", "-c",
                  "test $RANK = 1 && exec tail -f /dev/null; exec " + program("ddl_program") + " sum"}));
  CHECK(job.wait_and_require_nothing_left() == 1);
  CHECK_THAT(
      job.out(),
      Contains("[0]<stdout>:init: bootstrap: not all ranks have arrived within 0.01 s (DDL_START_TIMEOUT_"));
}

TEST_CASE("ddl_init fails after its timeout if the PMIx server does not answer", "[libddl]") {
  // The kernel accepts the connection, but no process reads from it.
  const auto any = net::SocketAddress::parse("127.0.0.1:0");
  REQUIRE(any);
  const auto listener = net::listen_tcp(*any, 8);
  REQUIRE(listener);
  const auto silent = net::local_address(listener->get());
  REQUIRE(silent);
  const Scratch scratch;
  const std::string ask_it =
      "for n in $(env | grep ^PMIX_SERVER_URI | cut -d= -f1); do export $n='x.0;tcp4://" + silent->to_text() +
      "'; done";
  Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", "-x", "DDL_START_TIMEOUT_SECONDS=0.01", "sh", "-c",
                           "test $RANK = 0 && exec tail -f /dev/null; " + ask_it + "; exec " +
                               program("ddl_program") + " sum"}));
  CHECK(job.wait_and_require_nothing_left() == 1);
  CHECK_THAT(job.out(),
             Contains("[1]<stdout>:init: bootstrap: bootstrap pmix: PMIx_Init: the PMIx server of "
                      "this host has not answered for 0.") &&
                 Contains(" s (DDL_START_TIMEOUT_SECONDS); it is a process of the launcher, which may "
                          "have been stopped, "));
}

TEST_CASE("ranks connect although TMPDIR has little space", "[libddl]") {
  if (::geteuid() != 0) DDL_SKIP("only root mounts a small file system");
  for (const std::string size : {"300k", "5m", "80m"}) {
    CAPTURE(size);
    const Scratch scratch;
    Command command = ddl_program(4, "sum");
    command.argv.insert(command.argv.begin(),
                        {"unshare", "-m", "sh", "-c",
                         "mount -t tmpfs -o size=" + size + " none \"$TMPDIR\" && exec \"$@\"", "sh"});
    Job job(scratch, command);
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(), Contains("[3]<stdout>:round 1: ddl rank 3 of 4, local 3 of 4, by pmix: 0 wrong"));
  }
}

TEST_CASE("after a rank is killed in a collective, the others' errors name rank, host, pid and operation",
          "[libddl]") {
  for (const int size : {2, 4}) {
    CAPTURE(size);
    const Scratch scratch;
    Command command = ddl_program(size, "loop");
    command.argv.insert(command.argv.begin() + 1, {"--kill-grace", "1000"});
    Job job(scratch, command);
    job.wait_for("ready", size);
    const std::size_t at = job.out().find("pid1=") + 5;
    const std::string pid = job.out().substr(at, job.out().find('\n', at) - at);
    const auto pidfd = open_pidfd(static_cast<pid_t>(std::stol(pid)));
    REQUIRE(pidfd);
    REQUIRE(send_signal(pidfd->get(), SIGKILL));
    // The time until they notice, which must be within 1 s, is measured in bench/.
    CHECK(job.wait_and_require_nothing_left() == 128 + SIGKILL);
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    for (int rank = 0; rank < size; ++rank) {
      const std::string message = "[" + std::to_string(rank) + "]<stdout>:allreduce: peer lost: ";
      if (rank == 1) {
        CHECK_THAT(job.out(), !Contains(message));
        continue;
      }
      const std::size_t begin = job.out().find(message);
      REQUIRE(begin != std::string::npos);
      const std::string line = job.out().substr(begin, job.out().find('\n', begin) - begin);
      CHECK_THAT(line, Contains("rank 1") && Contains(host) && Contains(pid) && Contains("allreduce"));
    }
    CHECK_THAT(job.err(),
               Contains("rank 1 on " + std::string(host) + " (pid " + pid + ") was killed by SIGKILL"));
    CHECK_THAT(job.err(), !Contains("exited with 1"));
  }
}

TEST_CASE("a rank that exits with 0 in the middle of the job is named, not the rank that noticed it",
          "[libddl]") {
  const Scratch scratch;
  Job job(scratch, ddl_program(3, "vanish"));
  CHECK(job.wait_and_require_nothing_left() == 8);
  CHECK_THAT(job.err(), Contains("ddlrun: rank 1 on ") && Contains(") exited with 0 after ") &&
                            Contains(" s while others waited for it\n"));
}

TEST_CASE(
    "a rank is a shell that starts one program after the other, and each time the ranks find each other",
    "[libddl]") {
  const std::string ddl = program("ddl_program");
  const Scratch scratch;
  SECTION("although rank 0 leaves last") {
    Command command = ddlrun({"-np", "3", "--oversubscribe", "--stall-check-warning-time-seconds", "0.3",
                              "sh", "-c", ddl + " late && " + ddl + " sum && " + ddl + " sum"});
    command.input = Command::Input::kPipe;
    Job job(scratch, command);
    job.wait_for("ddlrun: ddl_init: 2 of 3 ranks have waited for ");
    job.wait_for(" for rank 0 (");
    job.close_input();
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK(occurrences(job.out(), "round 1: ddl rank ") == 6);
    CHECK(occurrences(job.out(), ": 0 wrong sums") == 12);
  }
  SECTION("although it has crashed") {
    Job job(scratch, ddlrun({"-np", "3", "--oversubscribe", "sh", "-c",
                             ddl + " crash; " + ddl + " crash; " + ddl + " sum"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK(occurrences(job.out(), ": 0 wrong sums") == 6);
  }
}

TEST_CASE("a rank that is stopped is named, not the one that gave up waiting", "[libddl]") {
  const Scratch scratch;
  Command command = ddl_program(3, "work");
  command.environment["DDL_TIMEOUT_SECONDS"] = "2";
  Job job(scratch, command);
  job.wait_for("ready", 3);
  const std::size_t at = job.out().find("pid1=") + 5;
  const auto pid = static_cast<pid_t>(std::stol(job.out().substr(at)));
  REQUIRE(::kill(pid, SIGSTOP) == 0);
  CHECK(job.wait_and_require_nothing_left() == contract::kSignalBase + SIGSTOP);
  CHECK_THAT(job.err(), Contains("ddlrun: the job was ended because rank 1 on ") &&
                            Contains("(pid " + std::to_string(pid) + ") was stopped by SIGSTOP"));
}

TEST_CASE("ddl_abort ends the job with its code, and every rank's error and the report contain its message",
          "[libddl]") {
  // By PMIx, and by PMI-1, which accepts a code but no text.
  const std::string bootstrap = GENERATE("pmix", "pmi");
  const std::string what = GENERATE("abort", "abort_in_thread");
  const int size = GENERATE(1, 3);
  CAPTURE(bootstrap, what, size);
  const Scratch scratch;
  Command command = ddl_program(size, what);
  if (bootstrap == "pmi")
    command.argv.insert(command.argv.begin() + 1, {"-x", "DDL_MODULE_DIR=" + scratch.path()});
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 42);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string culprit = "rank " + std::to_string(size - 1) + " on " + host + " (pid ";
  CHECK_THAT(job.err(), Contains("ddlrun: " + culprit) && Contains("aborted the job with code 42 after ") &&
                            Contains("libddl: " + culprit) &&
                            Contains(") aborted the job with code 42: the loss is not a number\n"));
  if (bootstrap == "pmix") CHECK_THAT(job.err(), Contains(" s: the loss is not a number\n"));
  for (int rank = 0; rank < size - 1; ++rank) {
    const std::string own = "[" + std::to_string(rank) + "]<stdout>:";
    CHECK_THAT(job.out(), Contains(own + "call: aborted: " + culprit) &&
                              Contains(own + "again: aborted: the context was aborted earlier: " + culprit));
  }
  CHECK(occurrences(job.out(), "aborted the job with code 42 ") == 2 * (size - 1));
  CHECK(occurrences(job.out(), ": the loss is not a number\n") == 2 * (size - 1));
}

TEST_CASE("ddl_abort also ends the job without a launcher and under mpirun", "[libddl]") {
  const Scratch scratch;
  Command alone;
  alone.argv = {program("ddl_program"), "abort"};
  Job job(scratch, alone);
  CHECK(job.wait_and_require_nothing_left() == 42);
  CHECK_THAT(job.err(), Contains("libddl: rank 0 on ") &&
                            Contains(") aborted the job with code 42: the loss is not a number\n"));
  const std::string mpirun = DDL_E2E_MPIEXEC;
  if (mpirun.empty()) return;
  Command under_mpirun = alone;
  under_mpirun.argv.insert(under_mpirun.argv.begin(),
                           {mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "3"});
  Job several(scratch, under_mpirun);
  // mpirun may first notice a rank that ends as a consequence, and may return before the last one has ended.
  const int code = several.wait();
  several.require_all_gone();
  CHECK((code == 42 || code == 8));
  CHECK_THAT(several.err(), Contains("libddl: rank 2 on "));
  // mpirun may kill the others before they print; what they print names the cause.
  CHECK(occurrences(several.out(), "call: aborted: rank 2 on ") == occurrences(several.out(), "call: "));
}

TEST_CASE("an idle initialised job rarely wakes up, and its PMIx store is small", "[libddl]") {
  if (std::string_view(DDL_E2E_SANITIZE) != "") DDL_SKIP("a sanitizer has threads of its own");
  const Scratch scratch;
  Command command = ddl_program(4, "idle");
  // The agent looks who listens on the port of a framework: often after the start, and seldom later.
  command.argv.insert(command.argv.begin() + 1, {"--framework", "none"});
  Job job(scratch, command);
  job.wait_for("ready", 4);
  REQUIRE(job.processes().size() == 7);
  const auto sleeps = [&] {
    std::int64_t sum = 0;
    for (const Process& process : job.processes()) sum += sleeps_of(process.pid);
    return sum;
  };
  // The ranks print "ready" a moment before they are idle: the minimum of three measurements counts.
  constexpr std::int64_t kMaxSleeps = 8;
  std::int64_t min_sleeps = kMaxSleeps + 1;
  for (int attempt = 0; attempt < 3 && min_sleeps > kMaxSleeps; ++attempt) {
    const auto before = sleeps();
    CHECK(job.is_silent_for(std::chrono::milliseconds(2000)));
    min_sleeps = std::min(min_sleeps, sleeps() - before);
  }
  // Agent and spawner check the other processes, and libpmix its own state, each less than once a second.
  CHECK(min_sleeps <= kMaxSleeps);
  std::uintmax_t stored = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path("tmp"))) {
    if (entry.is_regular_file()) stored += entry.file_size();
  }
  CHECK(stored > 0);
  CHECK(stored < std::uintmax_t{3} << 20);  // the default of libpmix is 8 MiB
  job.send(SIGUSR1);
  CHECK(job.wait_and_require_nothing_left() == 0);
}

}  // namespace
}  // namespace ddl::e2e
