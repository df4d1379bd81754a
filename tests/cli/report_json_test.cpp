
#include <csignal>
#include <cstdint>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/report_fixture.h"
#include "contract/version.h"
#include "report/job_record.h"
#include "support/catch.h"

using namespace ddl::test;
using nlohmann::json;

TEST_CASE("the report as JSON is one line with all fields") {
  JobReport report = report_of(EndReason::kRankFailed, 3, {exited(0, 3, 1.5), killed(1, SIGTERM, 1.6, true)});
  report.first_failure = 0;
  report.leftovers_ended = 2;
  report.ranks[0].stderr_tail = {"one", "two"};
  report.ranks[0].gone_rank = 1;
  report.ranks[0].usage = {1.25, 0, 4096};
  report.ranks[0].clock_hertz = 2'500'000'000;
  report.ranks[0].calls = {{{"allreduce", false, 3, 12, 0.5, 0.25}}, 1.5, 40, 0.125, {{4, 0.25}}};
  const std::string text = ddl::report::report_json(report);
  CHECK(text.find('\n') == text.size() - 1);
  CHECK(json::parse(text) == json::parse(R"({
    "ddlrun": ")" + std::string(ddl::contract::kVersion) +
                                         R"(", "kind": "job_report", "reason": "rank_failed",
    "exit_code": 3, "first_failure": 0, "message": null, "abort_message": null, "signal": null,
    "run_seconds": 12.5, "leftovers_ended": 2, "timeline": null, "start": [], "host_usage": [], "planned": [], "last_events": [],
    "ranks": [
      {"rank": 0, "host": "node3", "pid": 4240, "outcome": "exited", "exit_code": 3, "signal": null,
       "core_dumped": false, "ended_by_ddlrun": false, "seen_gone": 1, "run_seconds": 1.5, "user_seconds": 1.25, "system_seconds": 0,
       "peak_resident_bytes": 4096, "clock_hertz": 2500000000,
       "calls": [{"kind": "allreduce", "named": false, "calls": 3, "bytes": 12, "seconds": 0.5,
                  "wait_seconds": 0.25}], "tensor_wait_seconds": 1.5, "steps": 40, "step_seconds": 0.125, "awaited": [{"rank": 4, "seconds": 0.25}],
       "start_error": null,
       "kill_explanation": null, "stderr_tail": ["one", "two"]},
      {"rank": 1, "host": "node3", "pid": 4241, "outcome": "signalled", "exit_code": null, "signal": 15,
       "core_dumped": false, "ended_by_ddlrun": true, "seen_gone": null, "run_seconds": 1.6, "user_seconds": null,
       "system_seconds": null, "peak_resident_bytes": null, "clock_hertz": null, "calls": [], "tensor_wait_seconds": 0, "steps": 0, "step_seconds": 0,
       "awaited": [], "start_error": null,
       "kill_explanation": null, "stderr_tail": []}]})"));
}

TEST_CASE("bindings are reported for the ranks whose binding was read") {
  JobReport report = report_of(EndReason::kSuccess, 0, {exited(0, 0, 1), exited(1, 0, 1), exited(2, 0, 1)});
  using ddl::CpuSet;
  report.bindings[1] = {CpuSet::range(8, 15),
                        {CpuSet::range(0, 15), "default", "CUDA_VISIBLE_DEVICES=1"},
                        {{{"0000:c1:00.0", "GPU-a"}, {"0000:c2:00.0", ""}}},
                        "rank 1 on node3 may run on 0-15"};
  report.bindings[0].gpus.emplace();
  const auto parsed = json::parse(ddl::report::report_json(report));
  CHECK(parsed["ranks"][0]["binding"]["gpus"] == json::array());
  CHECK_FALSE(parsed["ranks"][2].contains("binding"));
  CHECK(parsed["ranks"][1]["binding"] == json::parse(R"({"planned_cpus": "8-15", "cpus": "0-15",
    "memory": "default", "devices": "CUDA_VISIBLE_DEVICES=1",
    "gpus": [{"bus_id": "0000:c1:00.0", "uuid": "GPU-a"}, {"bus_id": "0000:c2:00.0", "uuid": null}],
    "difference": "rank 1 on node3 may run on 0-15"})"));
}

TEST_CASE("every reason and outcome has its own name") {
  std::set<std::string> names;
  for (const auto reason :
       {EndReason::kSuccess, EndReason::kRankFailed, EndReason::kAborted, EndReason::kStartFailed,
        EndReason::kHostLost, EndReason::kTimeout, EndReason::kSignal}) {
    names.insert(
        json::parse(ddl::report::report_json(report_of(reason, 1, {})))["reason"].get<std::string>());
  }
  CHECK(names == std::set<std::string>{"success", "rank_failed", "aborted", "start_failed", "host_lost",
                                       "timeout", "signal"});
  using Kind = RankOutcome::Kind;
  names.clear();
  for (const auto kind :
       {Kind::kNotStarted, Kind::kStartFailed, Kind::kRunning, Kind::kExited, Kind::kSignalled}) {
    const auto text = ddl::report::report_json(report_of(EndReason::kRankFailed, 1, {of_kind(kind, 0)}));
    names.insert(json::parse(text)["ranks"][0]["outcome"].get<std::string>());
  }
  CHECK(names == std::set<std::string>{"not_started", "start_failed", "running", "exited", "signalled"});
}

TEST_CASE("the report as JSON has the timeline's path, and the last events of ranks in seconds before it") {
  JobReport report = report_of(EndReason::kRankFailed, 137, {exited(0, 1, 1)});
  report.timeline = "/home/me/t.json";
  report.histories.push_back(history_of(3));
  report.histories.push_back({4, 1000, {}});
  CHECK(json::parse(ddl::report::report_json(report))["timeline"] == "/home/me/t.json");
  CHECK(json::parse(ddl::report::report_json(report))["last_events"] == json::parse(R"([
    {"rank": 3, "work": "a wait for tensor \"grad\"", "work_seconds": 0.5, "events": [
      {"what": "call", "name": "allreduce", "number": 811, "bytes": 4096, "began_before_seconds": 3.0,
       "ended_before_seconds": 2.0, "status": "ok"},
      {"what": "program", "name": "\ufffd", "number": 0, "bytes": 0, "began_before_seconds": 2.0,
       "ended_before_seconds": 2.0, "status": "ok"},
      {"what": "tensor", "name": "grad", "number": 0, "bytes": 64, "began_before_seconds": 1.0,
       "ended_before_seconds": null, "status": null},
      {"what": "wait", "name": "wait", "number": 0, "bytes": 0, "began_before_seconds": 0.5,
       "ended_before_seconds": null, "status": null}]},
    {"rank": 4, "work": null, "work_seconds": 0.0, "events": []}])"));
}

TEST_CASE("what a rank has made up in its last events does not break the report") {
  JobReport report = report_of(EndReason::kRankFailed, 1, {exited(0, 1, 1)});
  ddl::contract::Event event;
  event.kind = static_cast<ddl::contract::Event::Kind>(200);
  event.call_kind = 255;
  event.status = -7;
  event.begin = std::numeric_limits<std::int64_t>::max();
  event.end = event.begin;
  event.number = event.call = event.bytes = ~std::uint64_t{0};
  report.histories.push_back({0, 1000, {event}});
  const auto shown = json::parse(ddl::report::report_json(report))["last_events"][0]["events"][0];
  CHECK(shown["what"] == "unknown");
  CHECK(shown["began_before_seconds"] == 0.0);
}

TEST_CASE("bytes that are not UTF-8 become U+FFFD in the report") {
  JobReport report = report_of(EndReason::kAborted, 1, {exited(0, 1, 1)});
  report.abort_message = "\xff\xfe \"quoted\"\n";
  const auto parsed = json::parse(ddl::report::report_json(report));
  CHECK(parsed["abort_message"] == "\xef\xbf\xbd\xef\xbf\xbd \"quoted\"\n");
}
