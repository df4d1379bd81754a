// Collectives by an MPI (--cpu-operations mpi): properties that the conformance suite does not test.
#include <csignal>

#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// The MPIs that libddl was built with: the names of their modules' folders.
std::vector<std::string> mpi_modules() {
  std::vector<std::string> names;
#ifdef DDL_E2E_OPENMPI_MODULE
  names.emplace_back("openmpi");
#endif
#ifdef DDL_E2E_MPICH_MODULE
  names.emplace_back("mpich");
#endif
  return names;
}

/// kill_grace: seconds that ranks have to print their errors before ddlrun kills them.
Command by_mpi(const std::string& mpi, int size, std::vector<std::string> words, int kill_grace = 1) {
  words.insert(words.begin(), {"-np", std::to_string(size), "--oversubscribe", "--tag-output",
                               "--cpu-operations", "mpi", "--kill-grace", std::to_string(kill_grace)});
  Command command = ddlrun(words);
  command.environment["DDL_MPI"] = mpi;
  // Without the messages of the MPI about broken connections.
  command.environment["UCX_LOG_LEVEL"] = "fatal";
  return command;
}

TEST_CASE("an MPI runs the collectives of a program without MPI, in two consecutive contexts",
          "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    CAPTURE(mpi);
    const Scratch scratch;
    Job job(scratch, by_mpi(mpi, 3, {program("ddl_program"), "sum"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (const std::string rank : {"0", "1", "2"})
      CHECK_THAT(job.out(), Contains("[" + rank + "]<stdout>:round 1: ddl rank " + rank + " of 3"));
    CHECK_THAT(job.out(), !Contains(" 1 wrong"));
  }
}

TEST_CASE("a rank that dies in a collective by MPI is named by the others", "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    for (const std::string fault : {"allreduce.in_round:1:20", "allreduce.before_publish:1:20"}) {
      CAPTURE(mpi, fault);
      const Scratch scratch;
      Command command = by_mpi(mpi, 3, {program("ddl_program"), "loop"}, 60);
      command.environment["DDL_FAULT"] = fault;
      Job job(scratch, command);
      CHECK(job.wait_and_require_nothing_left() == 128 + SIGKILL);
      // A rank that had not begun the call yet, because the victim was faster, says so.
      for (const std::string rank : {"0", "2"}) {
        CHECK_THAT(job.out(),
                   Contains("[" + rank + "]<stdout>:allreduce: peer lost: rank 1 on ") &&
                       (Contains(" died during allreduce #") || Contains(" died before allreduce #")));
      }
      CHECK_THAT(job.err(), Contains("was killed by SIGKILL"));
    }
  }
}

TEST_CASE("a rank that dies is named by the others in the errors of their open tensors", "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    // While all agree, inside a batch that all expected, and when this rank alone has entered it.
    for (const std::string fault :
         {"agree.in_round:1:1", "allreduce.in_round:1:20", "allreduce.before_publish:1:20"}) {
      CAPTURE(mpi, fault);
      const Scratch scratch;
      Command command = by_mpi(mpi, 3, {program("ddl_program"), "named"}, 60);
      command.environment["DDL_FAULT"] = fault;
      Job job(scratch, command);
      CHECK(job.wait_and_require_nothing_left() == 128 + SIGKILL);
      for (const std::string rank : {"0", "2"}) {
        const std::string head = "[" + rank + "]<stdout>:";
        // A survivor may have gone on to its next tensors, and not have submitted all of them.
        if (job.out().find(head + "allreduce_async: aborted: ") != std::string::npos) {
          CHECK_THAT(job.out(), Contains("aborted earlier: rank 1 on "));
          continue;
        }
        CHECK_THAT(job.out(), Contains(head + "wait_all: peer lost: rank 1 on ") &&
                                  (Contains(" died during ") || Contains(" died before ")));
        for (const std::string name : {"first", "second", "third"})
          CHECK_THAT(job.out(), Contains(head + name + " called back: peer lost"));
      }
      CHECK_THAT(job.err(), Contains("was killed by SIGKILL"));
    }
  }
}

TEST_CASE("a rank that has left, or does not call, is named by the ranks that wait for it",
          "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    for (const std::string way : {"leave", "wait"}) {
      CAPTURE(mpi, way);
      const Scratch scratch;
      Command command = by_mpi(mpi, 3, {program("ddl_program"), way});
      if (way == "wait") command.environment["DDL_TIMEOUT_SECONDS"] = "3";
      Job job(scratch, command);
      job.wait_for("<stdout>:allreduce: ", 2);
      CHECK_THAT(job.out(), way == "leave" ? Contains("peer lost: rank 1 on ") && Contains("left the job")
                                           : Contains("timeout: ") && Contains("not arrived: rank 1 on "));
      REQUIRE(::kill(job.pid(), SIGTERM) == 0);
      (void)job.wait_and_require_nothing_left();
    }
  }
}

TEST_CASE("a rank that is stopped during a transfer causes a timeout", "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    CAPTURE(mpi);
    const Scratch scratch;
    Command command = by_mpi(mpi, 3, {program("ddl_program"), "loop"}, 60);
    command.environment["DDL_FAULT"] = "allreduce.in_round:1:20:stop";
    command.environment["DDL_TIMEOUT_SECONDS"] = "3";
    Job job(scratch, command);
    // The other ranks give up first, but the job fails because of the one that was stopped.
    CHECK(job.wait_and_require_nothing_left() == 128 + SIGSTOP);
    CHECK_THAT(job.err(), Contains("ddlrun: rank 1 on "));
    for (const std::string rank : {"0", "2"})
      CHECK_THAT(job.out(), Contains("[" + rank + "]<stdout>:allreduce: timeout: "));
    CHECK_THAT(job.out(), Contains("MPI has not moved everything by then"));
  }
}

TEST_CASE("the program's own MPI is used at its thread level, and remains usable afterwards",
          "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    for (const std::string level : {"single", "funneled", "serialized", "multiple"}) {
      CAPTURE(mpi, level);
      const Scratch scratch;
      // DDL_MPI is empty: libddl uses the MPI of the program.
      Command command = by_mpi("", 2, {program("own_" + mpi + "_program"), level});
      Job job(scratch, command);
      CHECK(job.wait_and_require_nothing_left() == 0);
      const bool any = level == "serialized" || level == "multiple";
      for (const std::string rank : {"0", "1"}) {
        CHECK_THAT(job.out(), Contains("rank " + rank + " of 2 over ") &&
                                  Contains(": 2 ranks by mpi, 0 wrong sums, threads " +
                                           std::string(level == "multiple" ? "1" : "0") + ", then 2 ranks"));
        CHECK_THAT(job.out(), Contains("rank " + rank + ", another thread: " +
                                       (any ? std::string("ok") : "unsupported this program has ")));
        CHECK_THAT(job.out(),
                   Contains("rank " + rank + ", tensors: ok, 0 wrong sums, of another thread: ok, 0 wrong"));
        CHECK_THAT(job.out(), Contains("rank " + rank + ", at the end: 2 ranks by mpi, enabled 0"));
      }
    }
  }
}

TEST_CASE("an unusable choice of MPI is an error at the start", "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    CAPTURE(mpi);
    const Scratch scratch;
    Job job(scratch, by_mpi("", 1, {program("own_" + mpi + "_program"), "finalized"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.out(), Contains("MPI has been finalised in this process"));
    Job second(scratch, by_mpi("abi", 1, {program("own_" + mpi + "_program"), "finalized"}));
    CHECK(second.wait_and_require_nothing_left() == 0);
    CHECK_THAT(second.out(), Contains("DDL_MPI=abi would load libmpi_abi.so.1, by ") &&
                                 Contains("/ddl/abi/libddl_mpi.so, beside ") && Contains("unset DDL_MPI"));
  }
  const Scratch scratch;
  Job unknown(scratch, by_mpi("none-such", 2, {program("ddl_program"), "sum"}));
  CHECK(unknown.wait_and_require_nothing_left() == 1);
  CHECK_THAT(unknown.out(), Contains("there is no /") && Contains("/ddl/none-such/libddl_mpi*.so") &&
                                Contains("; DDL_MPI can be ") && Contains("mpicc is in PATH"));

  const std::string choose =
      "[ $HOROVOD_RANK = 0 ] || export DDL_CPU_OPERATIONS=mpi; exec " + program("ddl_program") + " sum";
  Job mixed(scratch, ddlrun({"-np", "2", "--oversubscribe", "sh", "-c", choose}));
  const int status = mixed.wait_and_require_nothing_left();
  if (Contains("MPI_Init").match(mixed.out() + mixed.err())) {
    // Open MPI 5 is initialised before ranks compare their settings, and may end its process then.
    CHECK((status == 1 || status == 14));
    CHECK_THAT(mixed.out() + mixed.err(), Contains("DDL_CPU_OPERATIONS must be the same on all ranks") ||
                                              Contains("An error occurred in MPI_Init_thread"));
  } else {
    CHECK(status == 1);
    CHECK_THAT(mixed.out(), Contains("DDL_CPU_OPERATIONS is mpi here and ddl on rank 0; it must be the same "
                                     "on all ranks"));
  }
}

TEST_CASE("different DDL_STAGING_BYTES on ranks are an error with MPI operations", "[mpi_operations]") {
  for (const std::string& mpi : mpi_modules()) {
    CAPTURE(mpi);
    const Scratch scratch;
    const std::string choose =
        "[ $HOROVOD_RANK = 0 ] || export DDL_STAGING_BYTES=64; exec " + program("ddl_program") + " sum";
    Job mixed(scratch, by_mpi(mpi, 2, {"sh", "-c", choose}));
    CHECK(mixed.wait_and_require_nothing_left() == 1);
    CHECK_THAT(mixed.out(),
               Contains("DDL_CPU_OPERATIONS is mpi here and mpi with DDL_STAGING_BYTES=64 on rank 1") ||
                   Contains("DDL_CPU_OPERATIONS is mpi with DDL_STAGING_BYTES=64 here and mpi on rank 0"));
  }
}

}  // namespace
}  // namespace ddl::e2e
