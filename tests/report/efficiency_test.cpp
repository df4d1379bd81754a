#include "report/efficiency.h"

#include "report/record_fixture.h"
#include "support/catch.h"

using namespace ddl::test;
using ddl::report::times_of;

TEST_CASE("a rank's time is what it computed, waited and moved") {
  RankOutcome rank = exited(1, 0, 10);
  rank.calls.sums = {{"allreduce", false, 5, 1, 4, 2.5}};
  const auto ordered = times_of(rank);
  CHECK(ordered.compute == Approx(6));
  CHECK(ordered.wait == Approx(2.5));
  CHECK(ordered.move == Approx(1.5));

  // Of calls for named tensors, only the time counts in which the program waited for them.
  rank.calls.sums = {{"allreduce", true, 5, 1, 7, 4}};
  CHECK(times_of(rank).compute == Approx(10));
  rank.calls.tensor_wait_seconds = 3;
  CHECK(times_of(rank).compute == Approx(7));
  CHECK(times_of(rank).wait == Approx(3));
  CHECK(times_of(rank).move == Approx(0));

  // Numbers that contradict each other do not give a negative time.
  rank.calls.sums = {{"allreduce", false, 5, 1, 40, 90}};
  CHECK(times_of(rank).compute == Approx(0));
  CHECK(times_of(rank).wait == Approx(10));
}

TEST_CASE("efficiencies and late ranks are those of a table computed by hand") {
  // Compute times are 6.5, 6.5, 6.5 and 9.5 of 10 seconds.
  const auto times = times_of(record_with_late_rank().report);
  CHECK(times.has_calls);
  CHECK(times.mean.compute == Approx(7.25));
  CHECK(times.mean.wait == Approx(2.25));
  CHECK(times.efficiency.load_balance == Approx(7.25 / 9.5));
  CHECK(times.efficiency.communication == Approx(0.95));
  CHECK(times.efficiency.parallel() == Approx(0.725));
  REQUIRE(times.late.size() == 1);
  CHECK(times.late[0].rank == 3);
  CHECK(times.late[0].seconds == Approx(3));
  CHECK(times.late[0].share == Approx(0.3));

  const auto nothing = times_of(report_of(EndReason::kStartFailed, 1, {}));
  CHECK(nothing.ranks.empty());
  CHECK_FALSE(nothing.has_calls);
}

TEST_CASE("a rank is not blamed for what the others did not lose") {
  // libddl slept 3 s for rank 3, and the program waited for its tensors for 1 s of them.
  auto report = record_with_late_rank().report;
  for (RankOutcome& rank : report.ranks) {
    rank.calls.sums = {{"allreduce", true, 100, 400, 3.5, 3}};
    rank.calls.tensor_wait_seconds = 1;
  }
  CHECK(ddl::report::lost_share(report.ranks[0]) == Approx(1.0 / 3));
  CHECK(times_of(report).late[0].seconds == Approx(1));
}

TEST_CASE("scaling compares two runs") {
  const ddl::report::Scaling scaling{8, 2, 3, 9};
  CHECK(scaling.speedup() == Approx(3));
  CHECK(scaling.efficiency() == Approx(0.75));
  CHECK(scaling.weak_efficiency() == Approx(3));
}
