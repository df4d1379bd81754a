#include "cli/reports/job_report.h"

#include <csignal>

#include "cli/report_fixture.h"
#include "support/catch.h"

using namespace ddl::test;
using ddl::cli::failure_report;
using ddl::cli::TerminalStyle;
using ddl::launcher::duration_text;
using Kind = RankOutcome::Kind;

namespace {

const auto kPython = job_of({"python", "train.py"});

std::string plain(const JobReport& report, const ddl::launcher::JobSpec& job = kPython) {
  return failure_report(report, job, TerminalStyle(false));
}

}  // namespace

TEST_CASE("the report of a job that succeeded is empty") {
  const JobReport report = report_of(EndReason::kSuccess, 0, {exited(0, 0, 1), exited(1, 0, 1)});
  CHECK(plain(report).empty());
  CHECK(ddl::cli::success_sentence(report) == "2 ranks exited with 0 after 12.5 s");
}

TEST_CASE("a rank that exited with an error") {
  JobReport report =
      report_of(EndReason::kRankFailed, 1,
                {killed(0, SIGTERM, 12.4, true), exited(1, 1, 12.3), killed(2, SIGTERM, 12.4, true),
                 killed(3, SIGTERM, 12.4, true), killed(4, SIGTERM, 12.4, true),
                 killed(5, SIGTERM, 12.4, true), killed(6, SIGKILL, 17.3, true), exited(7, 0, 3.0)});
  report.first_failure = 1;
  report.ranks[1].stderr_tail = {"Traceback (most recent call last):", "",
                                 "ValueError: learning rate is negative"};
  CHECK(plain(report) ==
        "ddlrun: rank 1 on node3 (pid 4241) exited with 1 after 12.3 s\n"
        "  its last 3 lines on standard error:\n"
        "  | Traceback (most recent call last):\n"
        "  |\n"
        "  | ValueError: learning rate is negative\n"
        "  ranks 0, 2-5 were ended with SIGTERM; rank 6 was ended with SIGKILL; rank 7 had already exited "
        "with 0\n");
}

TEST_CASE("the report of a script that exited says what is wrong with its first line") {
  JobReport report = report_of(EndReason::kRankFailed, 127, {exited(0, 127, 0.5)});
  report.first_failure = 0;
  report.ranks[0].start_error = "/home/me/train: its first line ends with a carriage return";
  CHECK_THAT(
      plain(report),
      Catch::Contains("exited with 127 after 0.500 s\n  /home/me/train: its first line ends with a carriage "
                      "return\n"));
}

TEST_CASE(
    "if a rank's Python lacks the package ddl, the report names the guide that says how it is installed") {
  JobReport report = report_of(EndReason::kRankFailed, 1, {exited(0, 1, 2)});
  report.first_failure = 0;
  auto& tail = report.ranks[0].stderr_tail;
  tail = {"Traceback (most recent call last):", "ModuleNotFoundError: No module named 'ddl'"};
  CHECK_THAT(plain(report),
             Catch::Contains("\n  next: install the package ddl into the Python of the ranks") &&
                 Catch::EndsWith("docs/guide/python.md\n"));
  // The last is what Python says if the user's own program is called ddl.py.
  for (const char* other : {"'ddlib'", "'torch'", "'ddl.torch'; 'ddl' is not a package"}) {
    tail.back() = std::string("ModuleNotFoundError: No module named ") + other;
    CHECK_THAT(plain(report), !Catch::Contains("next:"));
  }
  for (const char* unknown : {"Unknown backend type ddl", "Unknown c10d backend type DDL"}) {
    tail.back() = std::string("[rank0]: AssertionError: ") + unknown;
    CHECK_THAT(plain(report),
               Catch::Contains("\n  next: install the package ddl into the Python of the ranks") &&
                   Catch::EndsWith("docs/guide/pytorch.md\n"));
  }
  tail.back() = "AssertionError: Unknown backend type ddlx";
  CHECK_THAT(plain(report), !Catch::Contains("next:"));
}

TEST_CASE("after a tail that was cut, the report names the file of the output, or the option for it") {
  JobReport report = report_of(EndReason::kRankFailed, 1, {exited(0, 1, 2)});
  report.first_failure = 0;
  report.ranks[0].stderr_tail.assign(20, "line");
  CHECK_THAT(plain(report), Catch::Contains("its last 20 lines on standard error:\n"));
  CHECK_THAT(plain(report),
             Catch::EndsWith("  next: --output-filename DIR keeps all output of every rank\n"));
  auto job = kPython;
  job.output_directory = "/home/me/logs";
  CHECK_THAT(plain(report, job), Catch::EndsWith("  next: all its output is in /home/me/logs\n"));
}

TEST_CASE("a rank that crashed") {
  JobReport report = report_of(EndReason::kRankFailed, 139,
                               {killed(0, SIGSEGV, 0.0341, false), killed(1, SIGTERM, 0.04, true)});
  report.first_failure = 0;
  report.leftovers_ended = 1;
  CHECK(plain(report) ==
        "ddlrun: rank 0 on node3 (pid 4240) was killed by SIGSEGV (segmentation fault) after 0.034 s\n"
        "  it wrote nothing on standard error\n"
        "  rank 1 was ended with SIGTERM\n"
        "  1 process outlived its rank and was ended\n"
        "  next: for a core file, type 'ulimit -c unlimited' before ddlrun; for a Python program, "
        "-x PYTHONFAULTHANDLER=1 shows where it was\n");
  report.ranks[0].core_dumped = true;
  report.leftovers_ended = 3;
  CHECK_THAT(plain(report), Catch::Contains("SIGSEGV (segmentation fault), core dumped after 0.034 s\n"));
  CHECK_THAT(plain(report), Catch::Contains("coredumpctl debug 4240"));
  CHECK_THAT(plain(report), Catch::Contains("  3 processes outlived their ranks and were ended\n"));
}

TEST_CASE("a SIGKILL from elsewhere is explained, or the report says where to look") {
  JobReport report = report_of(EndReason::kRankFailed, 137, {killed(0, SIGKILL, 3, false)});
  report.first_failure = 0;
  CHECK_THAT(plain(report),
             Catch::Contains("next: ddlrun did not send it: look for the kernel's out-of-memory "
                             "killer in 'dmesg' on node3\n"));
  report.ranks[0].kill_explanation = "the kernel killed it for want of memory (limit 4 GiB)";
  CHECK_THAT(plain(report), Catch::Contains("\n  the kernel killed it for want of memory (limit 4 GiB)\n"));
  CHECK_THAT(plain(report), !Catch::Contains("next:"));
}

TEST_CASE("a rank that aborted the job") {
  JobReport report = report_of(EndReason::kAborted, 3, {exited(0, 3, 1), killed(1, SIGTERM, 1, true)});
  report.first_failure = 0;
  CHECK_THAT(
      plain(report),
      Catch::StartsWith("ddlrun: rank 0 on node3 (pid 4240) aborted the job with code 3 after 1.00 s\n"));
  report.abort_message = "loss is NaN\n";
  CHECK_THAT(plain(report),
             Catch::StartsWith("ddlrun: rank 0 on node3 (pid 4240) aborted the job with code 3 after "
                               "1.00 s: loss is NaN\n  it wrote"));
  report.abort_message = "line one\nline \x1b[31mtwo\x07\n";
  CHECK_THAT(plain(report), Catch::Contains("after 1.00 s\n  its message:\n  | line one\n  | line two^G\n"));
}

TEST_CASE("a command that does not exist, and one that cannot be executed") {
  auto start_failed = of_kind(Kind::kStartFailed, 0);
  start_failed.start_error = "no such file: /home/me/train";
  JobReport report = report_of(EndReason::kStartFailed, 127,
                               {start_failed, of_kind(Kind::kStartFailed, 1), of_kind(Kind::kNotStarted, 2)});
  report.first_failure = 0;
  CHECK(plain(report, job_of({"./train"})) ==
        "ddlrun: rank 0 on node3 could not be started: no such file: /home/me/train\n"
        "  rank 1 could not be started either; rank 2 was not started\n");

  report.exit_code = 126;
  const auto script = job_of({"./my train.py"});
  report.ranks[0].start_error = "cannot execute ./my train.py: Permission denied";
  CHECK_THAT(plain(report, script), Catch::EndsWith("next: make it executable (chmod +x), or start it with "
                                                    "its interpreter: python3 './my train.py'\n"));
  report.ranks[0].start_error = "cannot execute ./my train.py: Exec format error";
  CHECK_THAT(plain(report, script),
             Catch::EndsWith("next: begin it with a #! line, or start it with its interpreter: python3 "
                             "'./my train.py'\n"));
  for (const char* other : {"cannot execute ./my train.py: Argument list too long",
                            "working directory /closed: Permission denied"}) {
    report.ranks[0].start_error = other;
    CHECK_THAT(plain(report, script), !Catch::Contains("next:"));
  }
}

TEST_CASE("a job that could not start, a lost host, a timeout, and a signal") {
  JobReport report = report_of(EndReason::kStartFailed, 122, {});
  report.message = "starting the agent: fork: Resource temporarily unavailable";
  CHECK(plain(report) == "ddlrun: starting the agent: fork: Resource temporarily unavailable\n");

  report = report_of(EndReason::kHostLost, 121, {of_kind(Kind::kRunning, 0), of_kind(Kind::kRunning, 1)});
  report.message = "the agent on node3 (pid 9) was killed by SIGKILL";
  CHECK(plain(report) ==
        "ddlrun: the agent on node3 (pid 9) was killed by SIGKILL\n"
        "  ranks 0, 1 were running at the last report\n");

  auto job = kPython;
  job.timeout_seconds = 2.5;
  report = report_of(EndReason::kTimeout, 124, {killed(0, SIGTERM, 2.5, true), exited(1, 0, 1)});
  CHECK(plain(report, job) ==
        "ddlrun: the job was ended because it was still running after 2.5 s (--timeout)\n"
        "  rank 0 was ended with SIGTERM; rank 1 exited with 0\n"
        "  next: if it was still making progress, give --timeout more seconds\n");

  report = report_of(EndReason::kSignal, 130, {killed(0, SIGINT, 2, true), killed(1, SIGINT, 2, true)});
  report.signal = SIGINT;
  CHECK(plain(report) == "ddlrun: ended by SIGINT after 12.5 s\n  ranks 0, 1 were ended with SIGINT\n");
}

TEST_CASE("a cancelled job reports no lost host, and lost output is not reported as a failure of a rank") {
  JobReport report =
      report_of(EndReason::kSignal, 143, {killed(0, SIGTERM, 2, false), of_kind(Kind::kRunning, 1)});
  report.signal = SIGTERM;
  report.message = "node3: its agent received SIGTERM, as sent by scancel or at a time limit";
  CHECK(plain(report) ==
        "ddlrun: ended by SIGTERM after 12.5 s\n"
        "  node3: its agent received SIGTERM, as sent by scancel or at a time limit\n"
        "  rank 0 was killed by SIGTERM; rank 1 was running at the last report\n");

  report = report_of(EndReason::kOutputLost, 123, {exited(0, 0, 1), exited(1, 0, 1)});
  report.message = "standard output: No space left on device";
  CHECK(plain(report) ==
        "ddlrun: every rank exited with 0, but part of the ranks' output was lost\n"
        "  standard output: No space left on device\n");
}

TEST_CASE("the failure of a surviving rank names the rank whose end libddl had reported to it") {
  JobReport report = report_of(EndReason::kRankFailed, 8, {exited(0, 8, 1), exited(1, 0, 1)});
  report.first_failure = 0;
  report.ranks[0].gone_rank = 1;
  report.ranks[0].kill_explanation = std::string("odd\0\x1b[31m words", 15);
  CHECK_THAT(plain(report),
             Catch::Contains(
                 "  before that, libddl had reported to it that rank 1 on node3 (pid 4241) was gone\n") &&
                 Catch::Contains("odd^@ words\n"));
}

TEST_CASE("a rank that left with 0 while others waited for it is named in the headline") {
  JobReport report = report_of(EndReason::kRankFailed, 8, {exited(0, 8, 2), exited(1, 0, 1)});
  report.first_failure = 1;
  CHECK(plain(report) ==
        "ddlrun: rank 1 on node3 (pid 4241) exited with 0 after 1.00 s while others waited for it\n"
        "  rank 0 exited with 8\n"
        "  next: let it make the calls that the others make, or end all of them by ddl_abort()\n");
}

TEST_CASE("the report says what the ranks were in when the job failed") {
  JobReport report = report_of(EndReason::kRankFailed, 137, {exited(0, 8, 1), killed(1, SIGKILL, 1, false)});
  report.first_failure = 1;
  report.histories = {history_of(1), history_of(0), {2, 10'000'000'000, {}}};
  report.histories.push_back(history_of(3));
  report.histories.back().events.resize(1);
  CHECK_THAT(plain(report), Catch::Contains("\n  ranks 0, 1 were in a wait for tensor \"grad\" for 0.500 s\n"
                                            "  rank 3 was in user code after allreduce #811 for 2.000 s\n"));
}

TEST_CASE("a report without an outcome of the failed rank still has a headline") {
  JobReport report = report_of(EndReason::kRankFailed, 1, {});
  report.first_failure = 5;
  CHECK(plain(report) == "ddlrun: the job failed after 12.5 s\n");
}

TEST_CASE("colour adds only escape sequences to the report") {
  JobReport report = report_of(EndReason::kRankFailed, 1, {exited(0, 1, 2)});
  report.first_failure = 0;
  report.ranks[0].stderr_tail = {"boom"};
  CHECK(failure_report(report, kPython, TerminalStyle(true)) ==
        "\x1b[1;31mddlrun:\x1b[0m \x1b[1mrank 0 on node3 (pid 4240) exited with 1 after 2.00 s\x1b[0m\n"
        "  its last line on standard error:\n"
        "  \x1b[2m|\x1b[0m boom\n");
}

TEST_CASE("durations are written with three digits, or with two units") {
  CHECK(duration_text(0) == "0.000 s");
  CHECK(duration_text(0.9994) == "0.999 s");
  CHECK(duration_text(0.9996) == "1.00 s");
  CHECK(duration_text(9.994) == "9.99 s");
  CHECK(duration_text(9.996) == "10.0 s");
  CHECK(duration_text(59.94) == "59.9 s");
  CHECK(duration_text(59.96) == "1 min 0 s");
  CHECK(duration_text(125) == "2 min 5 s");
  CHECK(duration_text(3599.6) == "1 h 0 min");
  CHECK(duration_text(12000) == "3 h 20 min");
}
