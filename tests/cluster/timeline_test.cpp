// A timeline of ranks on hosts whose clocks differ.
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "cluster/harness/cluster.h"
#include "cluster/harness/host_job.h"
#include "support/catch.h"
#include "support/skip.h"
#include "timeline/trace_checker.h"

namespace ddl::cluster {
namespace {

using nlohmann::json;

/// The command, with the clocks of the second and the third host wrong by seconds, and too fast or too slow.
std::vector<std::string> with_wrong_clocks(const std::string& program, const std::string& mode) {
  return {"sh",
          "-c",
          "case $HOROVOD_CROSS_RANK in 1) export DDL_CLOCK_SKEW=5:100;; 2) export DDL_CLOCK_SKEW=-3.5:-80;; "
          "esac; "
          "exec \"$@\"",
          "sh",
          program,
          mode};
}

/// A call of all ranks: when the last of them began it, and the first ended it, in microseconds.
struct CallOfAll {
  int ranks = 0;
  double last_begin = std::numeric_limits<double>::lowest();
  double first_end = std::numeric_limits<double>::max();
};

std::map<std::uint64_t, CallOfAll> ordered_calls(const json& trace) {
  std::map<std::uint64_t, CallOfAll> calls;
  for (const json& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "call") continue;
    CallOfAll& call = calls[event["args"]["call_number"].get<std::uint64_t>()];
    const double begin = event["ts"].get<double>();
    ++call.ranks;
    call.last_begin = std::max(call.last_begin, begin);
    call.first_end = std::min(call.first_end, begin + event["dur"].get<double>());
  }
  return calls;
}

TEST_CASE("in a timeline no rank ends a call before all have begun it, although the hosts' clocks differ",
          "[timeline]") {
#ifndef DDL_CLUSTER_FAULT_INJECTION
  DDL_SKIP("libddl was built without DDL_FAULT_INJECTION, so its clocks cannot be made wrong");
#endif
  const SharedScratch folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);  // the login's head writes the file
  std::vector<std::string> words{"-H", "node1:2,node2:2,node3:2", "--timeline-filename",
                                 folder.path("t.json")};
  for (std::string& word : with_wrong_clocks(e2e::program("timeline_program"), "slow_steps"))
    words.push_back(std::move(word));
  HostJob job(words);
  REQUIRE(job.wait() == 0);
  INFO(job.err());
  const std::string text = e2e::bytes_of(folder.path("t.json"));
  CHECK(test::trace_errors(text) == std::vector<std::string>{});
  const json trace = json::parse(text);
  double bound = 0;
  for (const json& host : trace["otherData"]["hosts"]) {
    INFO(host.dump());
    REQUIRE(host["is_aligned"] == true);
    bound += host["bound_us"].get<double>();
    if (host["name"] == "node1") continue;
    CHECK(host["samples"] >= 2);
    const bool is_second = host["name"] == "node2";
    // Besides the skew of 100 ppm since the hosts' start.
    CHECK((host["offset_ns"] < -5e9) == is_second);
    // Two samples are at least so far apart, and each may be wrong by the bound.
    constexpr double kSecondsApart = 0.25;
    const double margin = 10 + 2 * host["bound_us"].get<double>() / kSecondsApart;
    CHECK(host["drift_ppm"].get<double>() == Approx(is_second ? -100 : 80).margin(margin));
  }
  const auto calls = ordered_calls(trace);
  CHECK(calls.size() == 60);
  double worst = std::numeric_limits<double>::lowest();
  for (const auto& [number, call] : calls) {
    CAPTURE(number);
    CHECK(call.ranks == 6);
    worst = std::max(worst, call.last_begin - call.first_end);
  }
  CAPTURE(bound);
  // After the last sample the clock goes on as between the samples, of which each may be wrong by its bound.
  CHECK(worst <= 3 * bound);
}

TEST_CASE("clocks are aligned in a timeline of milliseconds, also in one that the program writes",
          "[timeline]") {
#ifndef DDL_CLUSTER_FAULT_INJECTION
  DDL_SKIP("libddl was built without DDL_FAULT_INJECTION, so its clocks cannot be made wrong");
#endif
  const SharedScratch folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  std::vector<std::string> words{
      "-H",         "node1:1,node2:1,node3:1", "--timeline-filename", folder.path("t.json"), "--workdir",
      folder.path()};
  for (std::string& word : with_wrong_clocks(e2e::program("timeline_program"), "own"))
    words.push_back(std::move(word));
  HostJob job(words);
  REQUIRE(job.wait() == 0);
  INFO(job.err());
  for (const std::string name : {"t.json", "own.json"}) {
    CAPTURE(name);
    const json trace = json::parse(e2e::bytes_of(folder.path(name)));
    REQUIRE(trace["otherData"]["hosts"].size() == 3);
    for (const json& host : trace["otherData"]["hosts"]) {
      INFO(host.dump());
      REQUIRE(host["is_aligned"] == true);
      CHECK((host["offset_ns"] < -4.9e9) == (host["name"] == "node2"));
    }
  }
}

TEST_CASE("ranks of all hosts name the rank for which they have waited, not the one that waited with them",
          "[timeline]") {
  HostJob job({"-H", "node1:2,node2:2", "--json", e2e::program("timeline_program"), "late"});
  REQUIRE(job.wait() == 0);
  const json report = json::parse(job.err().substr(job.err().rfind("{\"ddlrun\"")));
  constexpr double kLate = 20 * 0.02;  // seconds, by which rank 3 was late altogether
  for (const std::size_t punctual : {0, 1, 2}) {
    const json& rank = report["ranks"][punctual];
    CAPTURE(rank.dump());
    REQUIRE_FALSE(rank["awaited"].empty());
    CHECK(rank["awaited"][0]["rank"] == 3);
    CHECK(rank["awaited"][0]["seconds"] > 0.8 * kLate);
  }
}

}  // namespace
}  // namespace ddl::cluster
