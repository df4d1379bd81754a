#include "report/verdict.h"

#include <csignal>
#include <limits>

#include "report/record_fixture.h"
#include "support/catch.h"

using namespace ddl::test;
using Catch::Matchers::Contains;
using ddl::report::Finding;
using ddl::report::JobRecord;
namespace launcher = ddl::launcher;

namespace {

std::vector<Finding> verdict_of(const JobRecord& record) {
  return ddl::report::verdict(record, ddl::report::times_of(record.report));
}

}  // namespace

TEST_CASE("the verdict begins with the end, and names the rank that made the others wait") {
  JobRecord record = record_with_late_rank();
  auto findings = verdict_of(record);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].what == "4 ranks on 2 hosts ended without an error after 10.0 s.");
  CHECK(findings[0].weight == Finding::Weight::kFact);
  CHECK(findings[1].what ==
        "Rank 3 on node2 made the others wait 30 % of the time (3.00 s each). It computed 1.46 times as long "
        "as the "
        "median rank.");
  CHECK(findings[1].weight == Finding::Weight::kLoss);
  CHECK_THAT(findings[1].advice, Contains("less work") && Contains("how node2 differs from the other hosts"));

  // It had half the CPU time of the others.
  record.report.ranks[3].usage.user_seconds = 4;
  findings = verdict_of(record);
  CHECK_THAT(findings[1].what, Contains("Meanwhile it had 0.47 CPUs, the others 1.00."));
  CHECK_THAT(findings[1].advice,
             Contains("what else runs on the cores of rank 3") && Contains("top on node2"));

  // It had as much, of slower cores.
  record.report.ranks[3].usage.user_seconds = 9;
  for (RankOutcome& rank : record.report.ranks)
    rank.clock_hertz = rank.rank == 3 ? 1'200'000'000 : 2'400'000'000;
  findings = verdict_of(record);
  CHECK_THAT(findings[1].what, Contains("Its cores ran at 1.20 GHz, those of the others at 2.40 GHz."));
  CHECK_THAT(findings[1].advice, Contains("--exclude node2"));
  record.report.ranks[3].clock_hertz = 2'200'000'000;
  CHECK_THAT(verdict_of(record)[1].what, !Contains("GHz"));

  record.hosts = {"node2"};
  CHECK_THAT(verdict_of(record)[1].advice, !Contains("other hosts"));
}

TEST_CASE("a failure is told in ddlrun's own words, with its next step") {
  JobRecord record = record_with_late_rank();
  record.report =
      report_of(EndReason::kRankFailed, 139, {killed(0, SIGSEGV, 1, false), killed(1, SIGTERM, 1, true)});
  record.said = {"ddlrun: rank 0 on node3 was killed by SIGSEGV", "  rank 1 was ended with SIGTERM",
                 "  next: look at the core file"};
  const auto findings = verdict_of(record);
  REQUIRE_FALSE(findings.empty());
  CHECK(findings[0].weight == Finding::Weight::kFailure);
  CHECK(findings[0].what == "rank 0 on node3 was killed by SIGSEGV.");
  CHECK(findings[0].advice == "look at the core file");
}

TEST_CASE("uneven work, data that move for long and idle CPUs are told") {
  JobRecord record = record_with_late_rank();
  for (RankOutcome& rank : record.report.ranks) rank.calls.awaited.clear();
  CHECK_THAT(verdict_of(record)[1].what, Contains("mean compute time is 76 % of the longest"));

  for (RankOutcome& rank : record.report.ranks) rank.calls.sums = {{"allreduce", false, 1, 1, 4, 0.25}};
  CHECK_THAT(verdict_of(record)[1].what,
             Contains("Moving and combining data took 38 % of the time (3.75 s)"));

  for (RankOutcome& rank : record.report.ranks) {
    rank.calls.sums.clear();
    rank.usage = {0.9, 0.1, 1};
  }
  CHECK_THAT(verdict_of(record)[1].what, Contains("used 0.10 of a CPU"));
}

TEST_CASE("slow cores are told without calls, too, but not those of idle ranks") {
  JobRecord record = record_with_late_rank();
  for (RankOutcome& rank : record.report.ranks) {
    rank.calls = {};
    rank.clock_hertz = rank.rank == 2 ? 1'500'000'000 : 3'000'000'000;
  }
  CHECK_THAT(verdict_of(record)[1].what,
             Contains("The cores of rank 2 on node2 ran at 1.50 GHz, those of the median rank at 3.00 GHz."));
  record.report.ranks[2].usage = {0.5, 0, 1};
  CHECK(verdict_of(record).size() == 1);
}

TEST_CASE("memory that was hardly used, nearly all used, or not enough is told") {
  JobRecord record = record_with_late_rank();
  record.report.hosts.resize(2);
  record.report.hosts[0] = {
      "node1", {10, 8, {std::int64_t{64} << 30, std::int64_t{10} << 30, 0, "/job", ""}, {}, {}, ""}};
  record.report.hosts[1] = {
      "node2", {10, 8, {std::int64_t{64} << 30, std::int64_t{2} << 30, 0, "/job", ""}, {}, {}, ""}};
  const auto told = [&] { return verdict_of(record).back(); };
  CHECK(told().what == "node1 used 10.0 of 64.0 GiB of memory at its peak.");
  CHECK(told().advice == "ask for 12 GiB a host");
  CHECK(told().weight == Finding::Weight::kFact);
  launcher::MemoryUse& memory = record.report.hosts[0].usage.memory;
  memory.peak = std::int64_t{63} << 30;
  CHECK_THAT(told().advice, Contains("ask for more"));
  memory.oom_kills = 2;
  CHECK(told().what ==
        "On node1 the kernel has killed 2 processes for lack of memory: the job used 63.0 of 64.0 GiB.");
  // A host without a limit says nothing of what the job needs.
  memory = {std::numeric_limits<std::int64_t>::max(), std::int64_t{63} << 30, 0, "/", ""};
  CHECK_THAT(told().what, Contains("node2 used 2.0 of 64.0 GiB"));
}

TEST_CASE("GPUs that were hardly used, or not all, are told of jobs that are not short") {
  JobRecord record = record_with_late_rank();
  record.report.hosts.resize(2);
  std::vector<launcher::GpuUse>& gpus = record.report.hosts[1].usage.gpus;
  gpus = {{"GPU-a", 0, "H200", 0.5}, {"GPU-b", 1, "H200", 0.1}, {"MIG-c", 2, "H200", -1}};
  record.report.run_seconds = 60;
  const auto told = [&] { return verdict_of(record).back(); };
  CHECK_THAT(told().what, !Contains("GPU"));
  gpus[0].busy_ratio = 0.2;
  CHECK(told().what == "The GPUs were busy 15 % of the time.");
  CHECK(told().weight == Finding::Weight::kLoss);
  gpus[1].busy_ratio = 0;
  CHECK(told().what == "1 of 2 GPUs of the ranks did nothing.");
  record.report.run_seconds = 10;
  CHECK_THAT(told().what, !Contains("GPU"));
}

TEST_CASE("the next request has what the job needed, with a margin") {
  JobRecord record = record_with_late_rank();
  CHECK(ddl::report::next_request(record).empty());
  record.scheduler_job = "Slurm job 7";
  record.report.run_seconds = 3600;
  for (RankOutcome& rank : record.report.ranks) rank.usage.peak_resident_bytes = std::int64_t{5} << 30;
  CHECK(ddl::report::next_request(record) ==
        std::vector<std::string>{"#SBATCH --mem=12G", "#SBATCH --time=01:31:00"});
  record.report.reason = EndReason::kTimeout;
  CHECK(ddl::report::next_request(record).empty());
}
