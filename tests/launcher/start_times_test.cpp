#include "launcher/head/reports.h"

#include "support/catch.h"

using namespace ddl::launcher;
using Catch::Matchers::Contains;

TEST_CASE("a start-up is reported as far as it came") {
  StartTimes times;
  CHECK(times.text() == "start-up: no agent was ready");
  times.on_agents_ready("node3", 0.31, 0.25);
  CHECK_THAT(times.text(),
             Contains("(slowest node3: 0.310 s, of which ssh 0.250 s)") && !Contains("launched"));
  times.on_launched(2);
  times.on_rank_started();
  CHECK_THAT(times.text(), Contains("launched after") && !Contains("all ranks started"));
  times.on_rank_started();
  CHECK_THAT(times.text(), Contains("all ranks started after") && Contains("no rank was a PMIx client"));
  times.on_rank_initialised();
  CHECK_THAT(times.text(), Contains("1 initialised"));
  times.on_rank_initialised();
  CHECK_THAT(times.text(), Contains("all initialised after") && !Contains("first collective"));
  times.on_first_collective();
  CHECK_THAT(times.text(), Contains("first collective done after"));
}

TEST_CASE("for agents that were forked no ssh is reported") {
  StartTimes times;
  times.on_agents_ready("vm", 0.004, 0);
  CHECK_THAT(times.text(), !Contains("ssh"));
}
