// ddlrun's timelines of real jobs: --timeline-filename, --timeline start|stop, and what a failed job did last.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "contract/ddlrun.h"
#include "e2e/harness/job.h"
#include "launcher/job/rank_history.h"
#include "support/catch.h"
#include "timeline/trace_checker.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;
using TimelineJson = nlohmann::json;

constexpr int kTimelineRanks = 3;

Command timeline_job(std::vector<std::string> options, const std::string& mode) {
  options.insert(options.begin(),
                 {"-np", std::to_string(kTimelineRanks), "--oversubscribe", "--kill-grace", "0"});
  options.insert(options.end(), {program("timeline_program"), mode});
  return ddlrun(options);
}

/// The file, which must be a valid trace of all ranks.
TimelineJson valid_timeline(const std::string& text) {
  CHECK(test::trace_errors(text) == std::vector<std::string>{});
  TimelineJson trace = TimelineJson::parse(text);
  std::set<int> ranks;
  for (const TimelineJson& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") ranks.insert(event["pid"].get<int>());
  }
  CHECK(ranks == std::set<int>{0, 1, 2});
  return trace;
}

/// The number of events of this rank, in this phase, that are called so.
int number_of(const TimelineJson& trace, int rank, const std::string& phase, const std::string& name) {
  const TimelineJson& events = trace["traceEvents"];
  return static_cast<int>(std::count_if(events.begin(), events.end(), [&](const TimelineJson& event) {
    return event["pid"] == rank && event["ph"] == phase && event["name"] == name;
  }));
}

/// "3: step 0": the rank and the name of each event that had not ended.
std::set<std::string> unfinished_events(const TimelineJson& trace) {
  std::set<std::string> found;
  for (const TimelineJson& event : trace["traceEvents"]) {
    if (event.contains("args") && event["args"].contains("unfinished"))
      found.insert(std::to_string(event["pid"].get<int>()) + ": " + event["name"].get<std::string>());
  }
  return found;
}

pid_t pid_of(const Job& job, int rank) {
  const std::string before = "ready pid" + std::to_string(rank) + "=";
  const std::size_t at = job.out().find(before);
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(job.out().substr(at + before.size())));
}

void wait_until_ready(Job& job) {
  job.wait_until("all ranks", [&] {
    int lines = 0;
    for (std::size_t at = job.out().find("ready pid"); at != std::string::npos;
         at = job.out().find("ready pid", at)) {
      at = job.out().find('\n', at);
      if (at != std::string::npos) ++lines;
    }
    return lines == kTimelineRanks;
  });
}

struct TimelineAnswer {
  int exit_code = 0;
  std::string out, err;
};
TimelineAnswer change_timeline(const Scratch& scratch, std::vector<std::string> words) {
  words.insert(words.begin(), "--timeline");
  Job job(scratch, ddlrun(words));
  const int exit_code = job.wait();
  return {exit_code, job.out(), job.err()};
}

TEST_CASE("--timeline-filename writes what all ranks have done, and everything has an end", "[timeline]") {
  const Scratch scratch;
  Job job(scratch, timeline_job({"--timeline-filename", "t.json"}, "steps"));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.err(), Contains("ddlrun: the timeline is in " + scratch.path("t.json") + ": open it at"));
  const TimelineJson trace = valid_timeline(bytes_of(scratch.path("t.json")));
  for (int rank = 0; rank < kTimelineRanks; ++rank) {
    CAPTURE(rank);
    CHECK(number_of(trace, rank, "b", "first") == 5);
    CHECK(number_of(trace, rank, "b", "second") == 5);
    CHECK(number_of(trace, rank, "X", "step 4") == 1);
    CHECK(number_of(trace, rank, "i", "begun") == 5);
    CHECK(number_of(trace, rank, "i", "step") == 5);
    CHECK(number_of(trace, rank, "X", "allreduce") >= 10);
  }
  CHECK(unfinished_events(trace).empty());
  CHECK(trace["otherData"]["incomplete_ranks"].empty());
  CHECK(trace["otherData"]["missing_ranks"].empty());
  REQUIRE(trace["otherData"]["hosts"].size() == 1);
  CHECK(trace["otherData"]["hosts"][0]["is_aligned"] == true);
  // Each step's range encloses what the rank did in it: times are exact.
  std::map<int, double> step_end, call_end;
  for (const TimelineJson& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double end = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["name"] == "step 4") step_end[event["pid"].get<int>()] = end;
    if (event["cat"] == "call") call_end[event["pid"].get<int>()] = end;
  }
  for (const auto& [rank, end] : call_end) CHECK(end <= step_end[rank]);
}

TEST_CASE("--timeline-view draws the page of a timeline, plain or compressed", "[timeline]") {
  const Scratch scratch;
  for (const std::string& name : {scratch.path("t.json"), scratch.path("t.json.gz")}) {
    CAPTURE(name);
    Job job(scratch, timeline_job({"--timeline-filename", name}, "steps"));
    REQUIRE(job.wait_and_require_nothing_left() == 0);
    Job view(scratch, ddlrun({"--timeline-view", name}));
    CHECK(view.wait() == 0);
    CHECK(view.err().empty());
    CHECK_THAT(view.out(), Contains("<!DOCTYPE html>") && Contains("</html>") && !Contains("rank 0"));
    Job written(scratch, ddlrun({"--timeline-view", name, "--report", "view.html"}));
    CHECK(written.wait() == 0);
    CHECK(written.out().empty());
    CHECK(bytes_of(scratch.path("view.html")) == view.out());
    CHECK(page_errors(scratch, scratch.path("view.html"), true) == "");
  }

  // A page does not belong on a terminal, and what is no timeline is refused.
  Command command = ddlrun({"--timeline-view", scratch.path("t.json")});
  command.terminal = true;
  Job terminal(scratch, command);
  CHECK(terminal.wait() == 2);
  CHECK_THAT(terminal.out(), Contains("--report view.html") && !Contains("DOCTYPE"));
  Job page(scratch, ddlrun({"--timeline-view", "view.html"}));
  CHECK(page.wait() == 2);
  CHECK_THAT(page.err(),
             Contains("view.html: it is not valid JSON at byte 1") && Contains("hint: give a file"));
}

TEST_CASE("HOROVOD_TIMELINE names the file, and .gz compresses it", "[timeline]") {
  const Scratch scratch;
  Command command = timeline_job({"--json", "--timeline-max-mb", "1"}, "steps");
  command.environment["HOROVOD_TIMELINE"] = "t.json.gz";
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.err(), Contains("\"timeline\":\"" + scratch.path("t.json.gz") + "\""));
  Command unpacking;
  unpacking.argv = {"gzip", "-dc", scratch.path("t.json.gz")};
  Job unpacked(scratch, unpacking);
  CHECK(unpacked.wait() == 0);
  CHECK(number_of(valid_timeline(unpacked.out()), 2, "b", "second") == 5);
}

TEST_CASE("a program has a timeline of its own, also while ddlrun records one", "[timeline]") {
  for (const bool both : {false, true}) {
    CAPTURE(both);
    const Scratch scratch;
    Job job(scratch, timeline_job(both ? std::vector<std::string>{"--timeline-filename", "t.json"}
                                       : std::vector<std::string>{},
                                  "own"));
    CHECK(job.wait_and_require_nothing_left() == 0);
    const TimelineJson own = valid_timeline(bytes_of(scratch.path("own.json")));
    for (int rank = 0; rank < kTimelineRanks; ++rank) {
      CHECK(number_of(own, rank, "X", "step 0") == 0);
      CHECK(number_of(own, rank, "X", "step 4") == 1);
    }
    CHECK(unfinished_events(own).empty());
    if (both) CHECK(number_of(valid_timeline(bytes_of(scratch.path("t.json"))), 2, "X", "step 0") == 1);
  }
}

#ifdef DDL_E2E_OPEN_MPI
TEST_CASE("under mpirun rank 0 writes the timeline, by ddlrun's option or by the variable", "[timeline]") {
  const Scratch scratch;
  Job job(scratch, timeline_job({"--launcher", "mpirun", "--mpirun", DDL_E2E_MPIEXEC, "--timeline-filename",
                                 "t.json.gz", "--timeline-max-mb", "1"},
                                "steps"));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.err(), Contains("libddl: the timeline is in " + scratch.path("t.json.gz") + ": open it at"));
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"t.json.gz", "tmp"});

  Command command;
  command.argv = {
      DDL_E2E_MPIEXEC, "--allow-run-as-root", "--oversubscribe", "-np", "3", program("timeline_program"),
      "steps"};
  command.environment["DDL_TIMELINE"] = "by-mpirun.json";
  Job by_mpirun(scratch, command);
  CHECK(by_mpirun.wait() == 0);
  const TimelineJson trace = valid_timeline(bytes_of(scratch.path("by-mpirun.json")));
  for (int rank = 0; rank < kTimelineRanks; ++rank) {
    CHECK(number_of(trace, rank, "b", "first") == 5);
    CHECK(number_of(trace, rank, "X", "step 4") == 1);
  }
  CHECK(unfinished_events(trace).empty());
}
#endif

TEST_CASE("a rank that is killed has its events in the timeline, and the report says what ranks were in",
          "[timeline]") {
  const Scratch scratch;
  Job job(scratch, timeline_job({"--timeline-filename", "t.json"}, "hang"));
  wait_until_ready(job);
  REQUIRE(::kill(pid_of(job, 1), SIGKILL) == 0);
  CHECK(job.wait_and_require_nothing_left() == contract::kSignalBase + SIGKILL);
  CHECK_THAT(job.err(),
             Contains("rank 1 on ") && Contains("was killed by SIGKILL") && Contains(" in \"the end\" for "));
  const TimelineJson trace = valid_timeline(bytes_of(scratch.path("t.json")));
  CHECK(number_of(trace, 1, "b", "first") == 1);
  CHECK(number_of(trace, 1, "X", "step 0") == 1);
  const std::set<std::string> unfinished = unfinished_events(trace);
  CHECK(unfinished.contains("1: the end"));
  const std::string text = trace.dump();
  CHECK_THAT(text, Contains("the rank was ended by signal 9"));
  CHECK(number_of(trace, 2, "b", "awaited") == 1);
  CHECK(number_of(trace, 2, "e", "awaited") == 1);
}

TEST_CASE("in the timeline of a hang what has not ended lasts until the rank was ended", "[timeline]") {
  const Scratch scratch;
  Job job(
      scratch,
      timeline_job({"--timeline-filename", "t.json", "--stall-check-shutdown-time-seconds", "0.5"}, "hang"));
  CHECK(job.wait_and_require_nothing_left() == contract::kTimeout);
  const TimelineJson trace = valid_timeline(bytes_of(scratch.path("t.json")));
  double wait = 0, hang_end = 0;
  for (const TimelineJson& event : trace["traceEvents"]) {
    const bool is_wait = event["ph"] == "b" && event["name"] == "awaited";
    if (is_wait || event["name"] == "barrier")
      wait = wait == 0 ? event["ts"].get<double>() : std::min(wait, event["ts"].get<double>());
    if (event["name"] == "the end" && event["pid"] == 1)
      hang_end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  CHECK(wait > 0);
  CHECK(hang_end >= wait + 0.5e6);
}

TEST_CASE("--json has the last events of a failed job, a few of each rank, also without a timeline",
          "[timeline]") {
  const Scratch scratch;
  Job job(scratch, timeline_job({"--json"}, "until_signal"));
  wait_until_ready(job);
  REQUIRE(::kill(pid_of(job, 2), SIGKILL) == 0);
  CHECK(job.wait_and_require_nothing_left() == contract::kSignalBase + SIGKILL);
  const std::string& err = job.err();
  const auto report = TimelineJson::parse(err.substr(err.rfind("{\"ddlrun\"")));
  CHECK(report["timeline"].is_null());
  REQUIRE(report["last_events"].size() == 3);
  CHECK(report["last_events"][0]["rank"] == 2);  // the first failure
  for (const TimelineJson& history : report["last_events"]) {
    INFO(history.dump());
    CHECK(history["events"].size() >= 8);
    CHECK(history["events"].size() <= launcher::RankHistory::kEvents);
    CHECK(history["work"].is_string());
    for (const TimelineJson& event : history["events"]) {
      CHECK(event["began_before_seconds"] >= 0);
      if (!event["ended_before_seconds"].is_null())
        CHECK(event["ended_before_seconds"] <= event["began_before_seconds"]);
    }
  }
}

TEST_CASE("a running job records a timeline from --timeline start to --timeline stop", "[timeline]") {
  const Scratch scratch;
  Job job(scratch, timeline_job({"--timeline-max-mb", "1"}, "until_signal"));
  wait_until_ready(job);
  const std::string pid = std::to_string(job.pid());
  // The ranks get the signal after their agent has got what was sent before.
  const auto wait_for_steps = [&] {
    job.forget_output();
    job.send(SIGUSR2);
    job.wait_for("ten more");
  };
  CHECK(change_timeline(scratch, {"stop", pid}).exit_code == 1);
  const auto started = change_timeline(scratch, {"start", "--timeline-filename", "live.json", pid});
  CHECK(started.exit_code == 0);
  CHECK_THAT(started.out, Contains("writes it to " + scratch.path("live.json")));
  const auto again = change_timeline(scratch, {"start", pid});
  CHECK(again.exit_code == 1);
  CHECK_THAT(again.err, Contains("a timeline is recorded already, for " + scratch.path("live.json")));
  wait_for_steps();
  const auto stopped = change_timeline(scratch, {"stop", pid});
  CHECK(stopped.exit_code == 0);
  CHECK_THAT(stopped.out, Contains("is being written to " + scratch.path("live.json")));
  job.wait_for("the timeline is in " + scratch.path("live.json"));
  const std::string text = bytes_of(scratch.path("live.json"));
  CHECK(text.size() <= 1 << 20);
  const TimelineJson trace = valid_timeline(text);
  // What was before is not in it.
  for (int rank = 0; rank < kTimelineRanks; ++rank) CHECK(number_of(trace, rank, "X", "step 0") == 0);

  // The next one is written at the end of the job. It has a name of its own.
  const std::string own = scratch.path("ddlrun-" + pid + "-timeline.json");
  const auto next = change_timeline(scratch, {"start", pid});
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.out, Contains(own));
  wait_for_steps();
  job.send(SIGUSR1);
  CHECK(job.wait_and_require_nothing_left() == 0);
  const TimelineJson second = valid_timeline(bytes_of(own));
  CHECK(unfinished_events(second).empty());
  CHECK(change_timeline(scratch, {"stop", pid}).exit_code == 1);
}

TEST_CASE("a timeline that cannot be written is an error before any rank is started", "[timeline]") {
  const Scratch scratch;
  for (const std::string path : {"/proc/t.json", "missing/t.json", ".", "/dev/null"}) {
    CAPTURE(path);
    Job job(scratch,
            ddlrun({"-np", "2", "--oversubscribe", "--timeline-filename", path, "touch", "started"}));
    CHECK(job.wait_and_require_nothing_left() != 0);
    CHECK_THAT(job.err(), Contains("ddlrun: the timeline (--timeline-filename, or DDL_TIMELINE): "));
    CHECK(names_in(scratch.path()) == std::vector<std::string>{"tmp"});
  }
}

TEST_CASE("a timeline that cannot be written at the end is lost output", "[timeline]") {
  const Scratch scratch;
  Job job(scratch, timeline_job({"--timeline-filename", "t.json"}, "until_signal"));
  wait_until_ready(job);
  (void)scratch.make_directory("t.json");
  job.send(SIGUSR1);
  CHECK(job.wait_and_require_nothing_left() == contract::kOutputLost);
  CHECK_THAT(job.err(), Contains("ddlrun: no timeline was written: writing " + scratch.path("t.json")) &&
                            Contains("part of the ranks' output was lost") && Contains("the timeline: "));
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"t.json", "tmp"});
}

TEST_CASE("without libddl there is no timeline, and a file of that name is kept", "[timeline]") {
  const Scratch scratch;
  const std::string old = scratch.write("old.json", "what the program itself has written");
  for (const std::string name : {"old.json", "new.json"}) {
    Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", "--timeline-filename", name, "true"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    CHECK_THAT(job.err(), Contains("ddlrun: no timeline was written: no rank has begun a call of libddl"));
  }
  CHECK(bytes_of(old) == "what the program itself has written");
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"old.json", "tmp"});
}

TEST_CASE("if ddlrun is killed, there is no part of a timeline", "[timeline]") {
  const Scratch scratch;
  Job job(scratch, timeline_job({"--timeline-filename", "t.json"}, "until_signal"));
  wait_until_ready(job);
  job.send(SIGKILL);
  (void)job.wait();
  job.require_all_gone();
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"tmp"});
}

}  // namespace
}  // namespace ddl::e2e
