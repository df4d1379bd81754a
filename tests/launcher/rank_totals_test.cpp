// Counts of processes that come and go, as those of ranks that do not fall.
#include "launcher/head/rank_totals.h"

#include "support/catch.h"

using namespace ddl::launcher;

namespace {

/// A job on node1 and node2, whose ranks are those of the nodes with these numbers.
JobInspection job_on(const std::vector<int>& nodes) {
  JobInspection job;
  job.nodes = {{"node1", ""}, {"node2", ""}};
  for (const int node : nodes) {
    InspectedRank& rank = job.ranks.emplace_back();
    rank.rank = static_cast<int>(std::ssize(job.ranks)) - 1;
    rank.node = node;
    rank.state = InspectedRank::State::kRunning;
  }
  return job;
}

void count(InspectedRank& rank, std::int64_t pid, double cpu_seconds, std::int64_t calls) {
  rank.pid = pid;
  rank.process.cpu_seconds = cpu_seconds;
  rank.calls.steps = calls;
  rank.calls.sums = {{"allreduce", false, calls, 4 * calls, 0.5 * static_cast<double>(calls),
                      0.25 * static_cast<double>(calls)}};
}

const CallSum& sum_of(const JobInspection& job, std::size_t rank) {
  return job.ranks.at(rank).calls.sums.at(0);
}

}  // namespace

TEST_CASE("the counts of a process are told as they are") {
  RankTotals totals;
  for (const int calls : {1, 5, 5}) {
    JobInspection job = job_on({0, 1});
    count(job.ranks[0], 10, 0.5 * calls, calls);
    count(job.ranks[1], 11, 0.25, 1);
    const JobInspection before = job;
    totals.apply(job, {});
    CHECK(job == before);
  }
}

TEST_CASE("what is not known for a while keeps its last counts") {
  RankTotals totals;
  JobInspection job = job_on({0});
  totals.apply(job, {});
  CHECK(job.ranks[0].process.cpu_seconds < 0);
  CHECK(job.ranks[0].calls.sums.empty());
  count(job.ranks[0], 10, 2, 7);
  totals.apply(job, {});
  job = job_on({0});
  job.ranks[0].state = InspectedRank::State::kNoAnswer;
  totals.apply(job, {});
  CHECK(job.ranks[0].process.cpu_seconds == 2);
  CHECK(sum_of(job, 0).calls == 7);
  // A wait that was told while it went on was shorter.
  job = job_on({0});
  count(job.ranks[0], 10, 2.5, 8);
  job.ranks[0].calls.sums[0].wait_seconds = 1;
  totals.apply(job, {});
  CHECK(sum_of(job, 0).calls == 8);
  CHECK(sum_of(job, 0).wait_seconds == Approx(1.75));
}

TEST_CASE("a rank that starts another program goes on with its counts") {
  RankTotals totals;
  JobInspection job = job_on({0});
  count(job.ranks[0], 10, 2, 7);
  totals.apply(job, {});
  count(job.ranks[0], 11, 0.5, 3);
  totals.apply(job, {});
  CHECK(job.ranks[0].process.cpu_seconds == Approx(2.5));
  CHECK(job.ranks[0].calls.steps == 10);
  CHECK(sum_of(job, 0).calls == 10);
  CHECK(sum_of(job, 0).bytes == 40);
  CHECK(sum_of(job, 0).seconds == Approx(5));
}

TEST_CASE("processes that get other numbers count on under these, and former ranks keep their counts") {
  RankTotals totals;
  JobInspection job = job_on({0, 0, 1});
  for (std::size_t rank = 0; rank < 3; ++rank)
    count(job.ranks[rank], 10 + static_cast<std::int64_t>(rank), 1, 100);
  totals.apply(job, {70, 71, 80});
  // The process of rank 1 is dead; that of rank 2 is rank 1 on node2 now.
  job = job_on({0, 1});
  count(job.ranks[0], 10, 2, 110);
  count(job.ranks[1], 12, 2, 130);
  totals.apply(job, {70, 80});
  REQUIRE(job.ranks.size() == 4);
  CHECK(sum_of(job, 0).calls == 110);
  CHECK(sum_of(job, 1).calls == 30);
  CHECK(job.ranks[1].process.cpu_seconds == Approx(1));
  for (const std::size_t former : {2, 3}) {
    CHECK(job.ranks[former].state == InspectedRank::State::kFormer);
    CHECK(sum_of(job, former).calls == 100);
    CHECK(job.ranks[former].process.resident_bytes < 0);
  }
  CHECK(job.ranks[2].rank == 1);
  CHECK(job.ranks[2].node == 0);
  CHECK(job.ranks[3].rank == 2);
  CHECK(job.ranks[3].node == 1);
  // A new process is rank 2 on node2; node1 has left the job.
  job = job_on({1, 1, 1});
  job.nodes.erase(job.nodes.begin());
  for (InspectedRank& rank : job.ranks) rank.node = 0;
  count(job.ranks[0], 12, 2, 130);
  count(job.ranks[1], 20, 1, 5);
  count(job.ranks[2], 21, 1, 6);
  totals.apply(job, {80, 90, 91});
  REQUIRE(job.ranks.size() == 3);
  CHECK(sum_of(job, 1).calls == 35);
  CHECK(sum_of(job, 2).calls == 106);
}
