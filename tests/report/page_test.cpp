#include "report/page.h"

#include <algorithm>
#include <csignal>
#include <regex>

#include "report/record_fixture.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Matchers::Contains;
using ddl::report::JobRecord;
using ddl::report::page;

namespace {

/// Nothing that a browser would run or load.
void check_is_self_contained(const std::string& text) {
  for (const char* const part :
       {"<script", "http:", "https:", "url(", " src=", " href=", "javascript:", "@import"})
    CHECK_THAT(text, !Contains(part));
  CHECK_THAT(text, Contains("default-src 'none'; style-src 'unsafe-inline'"));
}

}  // namespace

TEST_CASE("a page has its verdict first, then where the time went") {
  const std::string text = page(record_with_late_rank(), nullptr);
  check_is_self_contained(text);
  std::size_t at = 0;
  for (const char* const part : {"<h1>train</h1>",
                                 "4 ranks on 2 hosts ended without an error",
                                 "Rank 3 on node2 made the others wait 30 %",
                                 "./train &apos;a b&apos;",
                                 "Where the time went",
                                 "compute 7",
                                 "Load balance",
                                 "Rank by rank",
                                 "Who waited for whom",
                                 "Collectives, and the bandwidth",
                                 "Networks",
                                 "Memory",
                                 "CPUs and GPUs",
                                 "Energy",
                                 "How it ended",
                                 "Scaling",
                                 "there is no run to compare with",
                                 "Start",
                                 "agents ready",
                                 "Software",
                                 "The next request",
                                 "the job ran without a scheduler"}) {
    CAPTURE(part);
    const std::size_t found = text.find(part, at);
    REQUIRE(found != std::string::npos);
    at = found;
  }
}

TEST_CASE("compute, wait and move differ in their shapes, too: in print there may be no colours") {
  const std::string text = page(record_with_late_rank(), nullptr);
  CHECK(std::regex_search(text, std::regex("<rect [^>]*height=\"26\" fill=\"var\\(--compute\\)\"/>")));
  CHECK(std::regex_search(
      text, std::regex("<rect [^>]*height=\"25\" fill=\"none\" stroke=\"var\\(--wait\\)\"[^>]*/>")));
  CHECK(std::regex_search(text, std::regex("<rect [^>]*height=\"13\" fill=\"var\\(--move\\)\"/>")));
}

TEST_CASE("nothing that a user, a host or a rank has written becomes a part of the page") {
  JobRecord record = record_with_late_rank();
  const std::string evil = "</style><img onerror=alert(1)>&\"'\u202e\x1b[31m\xff{{command}}";
  record.name = record.workdir = record.version = evil;
  record.command = {evil};
  record.hosts = {evil};
  record.said = {evil};
  record.environment = {{"DDL_X", evil}};
  record.report.reason = EndReason::kRankFailed;
  record.report.timeline = evil;
  record.report.start[0].name = evil;
  for (RankOutcome& rank : record.report.ranks) {
    rank.host = evil;
    rank.stderr_tail = {evil};
    rank.kill_explanation = evil;
    rank.calls.sums[0].kind = evil;
  }
  const std::string text = page(record, &record);
  CHECK_THAT(text, !Contains("<img"));
  CHECK_THAT(text, Contains("&lt;img onerror=alert(1)&gt;"));
  for (const char* const part : {"\u202e", "\x1b", "\xff"}) CHECK_THAT(text, !Contains(part));
  const auto closed = text.find("</style>");
  CHECK(text.find("</style>", closed + 1) == std::string::npos);
}

TEST_CASE("what was not measured is said, and why") {
  JobRecord record = record_with_late_rank();
  for (RankOutcome& rank : record.report.ranks) {
    rank.calls = {};
    rank.usage = {};
  }
  std::string text = page(record, nullptr);
  check_is_self_contained(text);
  CHECK_THAT(text, Contains("Not measured: compute, wait and move: the program has made no calls by libddl"));
  CHECK_THAT(text, Contains("no rank has ended in a way that its host could report"));
  record.report.hosts = {{"node1", {}}};
  record.report.hosts[0].usage.gpus_unknown = "libnvidia-ml.so.1 is missing";
  CHECK_THAT(page(record, nullptr), Contains("the use of GPUs; libnvidia-ml.so.1 is missing."));

  record.report = report_of(EndReason::kStartFailed, 127, {});
  record.said = {"ddlrun: node7 does not answer"};
  text = page(record, nullptr);
  check_is_self_contained(text);
  CHECK_THAT(text, Contains("failed with exit code 127") && Contains("node7 does not answer") &&
                       Contains("no rank has run") && Contains("the job did not begin"));
}

TEST_CASE("what the hosts have reported is in tables, with the sources of limits") {
  JobRecord record = record_with_late_rank();
  record.report.hosts = {host_with_gpus()};
  const std::string text = page(record, nullptr);
  for (const char* const part :
       {"/job_7", "8.0 GiB", "5.0 GiB", "hsn0", "102 MiB/s", "1.0 GiB/s", "10 %", "5000 J", "500 W", "76 %",
        "130 GiB", "140 GiB", "4321 J", "432 W", ">not measured<"}) {
    CAPTURE(part);
    CHECK_THAT(text, Contains(part));
  }
}

TEST_CASE("waits that were told while the job ran are on the page, and start and end beside the run") {
  JobRecord record = record_with_late_rank();
  record.report.run_seconds = 10.5;
  CHECK_THAT(page(record, nullptr), !Contains("Ranks waited long") &&
                                        Contains("Start: until all ranks ran") &&
                                        Contains("<td>0.600 s</td>") && Contains("<td>0.500 s</td>"));
  record.report.stalls = {"barrier #7: <2> of 4 ranks have waited for 61 s for rank 3"};
  CHECK_THAT(page(record, nullptr), Contains("Ranks waited long for others, 1 time:") &&
                                        Contains("barrier #7: &lt;2&gt; of 4 ranks"));
}

TEST_CASE("a run is compared with its baseline") {
  JobRecord base = record_with_late_rank();
  base.report.ranks.resize(1);
  base.report.run_seconds = 30;
  CHECK_THAT(page(record_with_late_rank(), &base),
             Contains("<td>3.00</td>") && Contains("<td>75 %</td>") && Contains("Baseline: train"));
  // The baseline's rank computed 6.5 s, and the four of this run 29 s together.
  CHECK_THAT(page(record_with_late_rank(), &base), Contains("Computation: ") && Contains("<td>22 %</td>") &&
                                                       Contains("Global: ") && Contains("<td>16 %</td>"));
  base.report.ranks.clear();
  CHECK_THAT(page(record_with_late_rank(), &base), Contains("one of the two runs has no ranks that ran"));
}

TEST_CASE("the binding is drawn once for hosts that are bound in the same way") {
  JobRecord record = record_with_late_rank();
  CHECK_THAT(page(record, nullptr), Contains("there is no plan of all ranks"));
  record.report.planned.resize(4);
  CHECK_THAT(page(record, nullptr), Contains("No rank was bound to CPUs"));
  record.report.planned = {{"0-3", {0}}, {"4-7,12", {1, 2}}, {"0-3", {0}}, {"4-7,12", {1, 2}}};
  const std::string alike = page(record, nullptr);
  CHECK_THAT(alike, Contains("node1, and in the same way 1 other host") &&
                        Contains("<title>rank 1: CPUs 4-7,12 GPU 1, 2</title>") && !Contains("rank 3: CPUs"));
  record.report.planned[3].cpus = "4-7";
  CHECK_THAT(page(record, nullptr), Contains("rank 3: CPUs 4-7 GPU 1, 2") && Contains("rank 1: CPUs 4-7,12"));
  record.report.planned[3].cpus = "seven";
  CHECK_THAT(page(record, nullptr), Contains("rank 1: CPUs 4-7,12"));
  // Only what is drawn is read.
  for (int rank = 4; rank < 20'000; ++rank) {
    record.report.ranks.push_back(punctual(rank, 3, 3));
    record.report.ranks.back().host = "node" + std::to_string(rank);
    record.report.planned.push_back({"0-65535", {}});
  }
  CHECK_THAT(page(record, nullptr), Contains("node4, and in the same way 19995 other hosts"));
}

TEST_CASE("of more than 64 ranks it is drawn which hosts waited for which") {
  JobRecord record = record_with_late_rank();
  record.report.ranks.clear();
  for (int rank = 0; rank < 128; ++rank) {
    RankOutcome one = punctual(rank, 127, rank == 127 ? 0 : 3);
    one.host = "node" + std::to_string(rank / 8);
    record.report.ranks.push_back(one);
  }
  record.report.ranks[5].calls.awaited = {{9, 3.5}};
  const std::string text = page(record, nullptr);
  CHECK_THAT(text, Contains("Rows: the host that waited") &&
                       Contains("the mean of its ranks. node0 is 0, node15 is 15."));
  // Of the pairs, those that waited longest, the first of them before all others.
  const std::size_t table = text.find("waited for rank");
  REQUIRE(table != std::string::npos);
  CHECK(text.find("<td class=\"text\">5</td><td>9</td><td>3.50 s</td>", table) <
        text.find("<td>127</td>", table));
  for (int rank = 0; rank < 128; ++rank)
    record.report.ranks[static_cast<std::size_t>(rank)].host = "node" + std::to_string(rank);
  CHECK_THAT(page(record, nullptr), !Contains("Rows: the host that waited"));
}

TEST_CASE("pages of many ranks are short") {
  const auto of = [](int ranks) {
    JobRecord record = record_with_late_rank();
    record.report.ranks.clear();
    for (int rank = 0; rank < ranks; ++rank) {
      record.report.ranks.push_back(punctual(rank, ranks - 1, 3));
      RankOutcome& last = record.report.ranks.back();
      last.host = "node" + std::to_string(rank / 8);
      last.calls.awaited.clear();
      // A matrix without gaps.
      for (int other = 0; other < std::min(ranks, 64); ++other)
        if (other != rank) last.calls.awaited.push_back({other, 0.01 * (other + 1)});
    }
    return record;
  };
  CHECK(page(of(64), nullptr).size() < 300'000);
  const std::string text = page(of(10'000), nullptr);
  CHECK(text.size() < 2'000'000);
  check_is_self_contained(text);
  CHECK_THAT(text, Contains("Each row is the mean of several of the 10000 ranks"));
}
