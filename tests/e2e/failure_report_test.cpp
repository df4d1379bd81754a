// The report of the first failure, which is the last output of ddlrun, as text and as JSON.
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>

#include "base/process.h"
#include "base/text.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// The text after a word, up to the next space or the end of the line.
std::string word_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find_first_of(" )\n", begin) - begin);
}

TEST_CASE("the report names rank, host, pid, exit code, run time, the last lines, and the other ranks",
          "[failure_report]") {
  const Scratch scratch;
  Job job(
      scratch,
      ddlrun(
          {"-np", "2", "sh", "-c",
           "[ $RANK = 0 ] && exec sleep 1000; echo pid=$$; for i in $(seq 1 30); do echo line $i >&2; done; "
           "exit 3"}));
  CHECK(job.wait_and_require_nothing_left() == 3);
  const std::size_t begin = job.err().find("ddlrun: rank 1");
  REQUIRE(begin != std::string::npos);
  const std::string report = job.err().substr(begin);
  const std::string pid = word_after(job.out(), "pid=");
  CHECK_THAT(report, Contains("rank 1 on " + host_name() + " (pid " + pid + ") exited with 3 after "));
  CHECK_THAT(report, Contains("its last 20 lines on standard error"));
  CHECK_THAT(report, !Contains("| line 10\n"));
  for (int line = 11; line <= 30; ++line)
    CHECK_THAT(report, Contains("| line " + std::to_string(line) + "\n"));
  CHECK_THAT(report, Contains("rank 0 was ended with SIGTERM"));
  // No line of a rank follows the report.
  CHECK_THAT(report, !Contains("[0]<") && !Contains("[1]<"));
  CHECK(report.back() == '\n');
}

TEST_CASE("the report follows all output, including that of ranks that write while they are ended",
          "[failure_report]") {
  const Scratch scratch;
  Fifo go(scratch, "go");
  Command command =
      ddlrun({"-np", "3", "--oversubscribe", "sh", "-c",
              "[ $RANK = 2 ] || { trap 'seq 1 20000; echo last words of $RANK >&2; exit 1' TERM; "
              "echo ready; while :; do sleep 0.05; done; }; read go < " +
                  go.path() + "; echo culprit >&2; exit 6"});
  command.output = Command::Output::kOnePipe;
  Job job(scratch, command);
  job.wait_for("ready", 2);
  go.write("now\n");
  CHECK(job.wait_and_require_nothing_left() == 6);
  const std::size_t report = job.out().find("ddlrun: rank 2");
  REQUIRE(report != std::string::npos);
  CHECK_THAT(job.out(), Contains("[0]<stderr>:last words of 0\n") &&
                            Contains("[1]<stderr>:last words of 1\n") && Contains("[0]<stdout>:20000\n") &&
                            Contains("[1]<stdout>:20000\n"));
  CHECK_THAT(job.out().substr(report), !Contains("]<std"));
  CHECK_THAT(job.out().substr(report), Contains("ranks 0, 1 exited with 1"));
}

TEST_CASE("the report names the signal that killed a rank", "[failure_report]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c", "[ $RANK = 1 ] && kill -SEGV $$; exec sleep 1000"}));
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGSEGV);
  CHECK_THAT(job.err(), Contains("rank 1 on " + host_name()) && Contains("was killed by SIGSEGV (") &&
                            Contains(" after "));
  CHECK_THAT(job.err(), Contains("it wrote nothing on standard error"));
}

TEST_CASE("a SIGKILL from another process is reported as a kill from outside", "[failure_report]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "sh", "-c", "echo pid$RANK=$$; exec sleep 1000"}));
  job.wait_for("pid", 2);
  const auto pid = parse_integer(word_after(job.out(), "pid1="));
  REQUIRE(pid);
  const auto pidfd = open_pidfd(static_cast<pid_t>(*pid));
  REQUIRE(pidfd);
  REQUIRE(send_signal(pidfd->get(), SIGKILL));
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGKILL);
  CHECK_THAT(job.err(), Contains("rank 1 on " + host_name() + " (pid " + std::to_string(*pid) +
                                 ") was killed by SIGKILL"));
  CHECK_THAT(job.err(), Contains("killed from outside"));
  CHECK_THAT(job.err(), !Contains("killed by the kernel"));
  CHECK_THAT(job.err(), Contains("rank 0 was ended with SIGTERM"));
}

/// The last line of standard error, which must be a complete line of JSON.
Json json_report(const Job& job) {
  const std::string& err = job.err();
  REQUIRE(!err.empty());
  REQUIRE(err.back() == '\n');
  const std::size_t begin = err.rfind('\n', err.size() - 2);
  return Json::parse(err.substr(begin == std::string::npos ? 0 : begin + 1));
}

TEST_CASE("--json reports a failure completely", "[failure_report]") {
  const Scratch scratch;
  const std::string fail_with_odd_bytes =
      "[ $RANK = 0 ] && exec sleep 1000; echo pid=$$; "
      "printf 'bad \\377 byte\\n\"quoted\"\\n' >&2; exit 3";
  Job job(scratch, ddlrun({"-np", "2", "--json", "sh", "-c", fail_with_odd_bytes}));
  CHECK(job.wait_and_require_nothing_left() == 3);
  const Json report = json_report(job);
  CHECK(report.at("kind") == "job_report");
  CHECK(report.at("reason") == "rank_failed");
  CHECK(report.at("exit_code") == 3);
  CHECK(report.at("first_failure") == 1);
  CHECK(report.at("run_seconds").get<double>() > 0);
  REQUIRE(report.at("ranks").size() == 2);
  const Json& culprit = report.at("ranks").at(1);
  CHECK(culprit.at("rank") == 1);
  CHECK(culprit.at("host") == host_name());
  CHECK(std::to_string(culprit.at("pid").get<int>()) == word_after(job.out(), "pid="));
  CHECK(culprit.at("outcome") == "exited");
  CHECK(culprit.at("exit_code") == 3);
  CHECK(culprit.at("signal").is_null());
  CHECK(culprit.at("run_seconds").get<double>() > 0);
  CHECK(culprit.at("ended_by_ddlrun") == false);
  REQUIRE(culprit.at("stderr_tail").size() == 2);
  CHECK(culprit.at("stderr_tail").at(1) == "\"quoted\"");
  const Json& other = report.at("ranks").at(0);
  CHECK(other.at("outcome") == "signalled");
  CHECK(other.at("signal") == SIGTERM);
  CHECK(other.at("ended_by_ddlrun") == true);
}

TEST_CASE("--json reports a success, a start failure and a timeout", "[failure_report]") {
  const Scratch scratch;
  Job success(scratch, ddlrun({"-np", "2", "--json", "true"}));
  CHECK(success.wait_and_require_nothing_left() == 0);
  CHECK(json_report(success).at("reason") == "success");
  CHECK(json_report(success).at("first_failure").is_null());

  Job start(scratch, ddlrun({"-np", "2", "--json", "./missing"}));
  CHECK(start.wait_and_require_nothing_left() == 127);
  CHECK(json_report(start).at("reason") == "start_failed");
  // The other rank may have been ended before its own failure.
  const Json started = json_report(start);
  const Json& culprit = started.at("ranks").at(started.at("first_failure").get<std::size_t>());
  CHECK(culprit.at("outcome") == "start_failed");
  CHECK_THAT(culprit.at("start_error").get<std::string>(), Contains("missing"));

  Job timeout(scratch, ddlrun({"-np", "2", "--json", "--timeout", "0.2", "sleep", "1000"}));
  CHECK(timeout.wait_and_require_nothing_left() == 124);
  CHECK(json_report(timeout).at("reason") == "timeout");
  CHECK(json_report(timeout).at("exit_code") == 124);
}

/// The calls of a kind that a rank has made in order, or for named tensors.
Json sum_of(const Json& rank, const std::string& kind, bool named) {
  for (const Json& one : rank.at("calls")) {
    if (one.at("kind") == kind && one.at("named") == named) return one;
  }
  FAIL("no " << kind << " in " << rank.dump());
  return {};
}

TEST_CASE("--json reports what ranks have used, and their calls of libddl", "[failure_report]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "2", "--json", program("timeline_program"), "steps"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  const Json report = json_report(job);
  for (const Json& rank : report.at("ranks")) {
    CAPTURE(rank.dump());
    CHECK(rank.at("user_seconds").get<double>() + rank.at("system_seconds").get<double>() > 0);
    CHECK(rank.at("peak_resident_bytes") > 1 << 20);
    const Json ordered = sum_of(rank, "allreduce", false), named = sum_of(rank, "allreduce", true);
    CHECK(ordered.at("bytes") == 5 * 4 * 1);
    CHECK(ordered.at("calls") == 5);
    CHECK(named.at("bytes") == 5 * 4 * (1000 + 3));
    CHECK(named.at("calls") >= 5);  // in one call or in two
    CHECK(named.at("calls") <= 10);
    CHECK(named.at("seconds") >= 0);
    CHECK(named.at("seconds") < rank.at("run_seconds"));
  }
}

TEST_CASE("--json names the rank for which the others have waited, and how long", "[failure_report]") {
  const Scratch scratch;
  Job job(scratch, ddlrun({"-np", "3", "--oversubscribe", "--json", program("timeline_program"), "late"}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  constexpr double kLate = 10 * 0.02;  // seconds, by which rank 2 was late in calls of each tier
  const Json ranks = json_report(job).at("ranks");
  const auto waited = [](const Json& rank, bool named) {
    return sum_of(rank, "allreduce", named).at("wait_seconds").get<double>();
  };
  for (const std::size_t punctual : {0, 1}) {
    const Json& rank = ranks.at(punctual);
    CAPTURE(ranks.dump());
    CHECK(waited(rank, false) > 0.8 * kLate);
    CHECK(rank.at("tensor_wait_seconds") > 0.8 * kLate);
    CHECK(rank.at("awaited").at(0).at("rank") == 2);
    CHECK(rank.at("awaited").at(0).at("seconds") > 0.8 * 2 * kLate);
    CHECK(waited(rank, false) < rank.at("run_seconds"));
    CHECK(waited(ranks.at(2), false) < waited(rank, false));
  }
}

}  // namespace
}  // namespace ddl::e2e
