// What all schedulers have in common.
#include "launcher/scheduler/scheduler.h"

#include "support/catch.h"

using namespace ddl::launcher;

TEST_CASE("without variables this process is in the job of no scheduler, and the last one is none") {
  for (const Scheduler* const scheduler : schedulers()) {
    CAPTURE(scheduler->name());
    CHECK(scheduler->job_id({}).empty());
    CHECK_FALSE(scheduler->find_job({}).value());
    CHECK(scheduler->check_single_task({}));
    CHECK(scheduler->node_name({}).empty());
    CHECK(scheduler->name().empty() == (scheduler == schedulers().back()));
    CHECK(scheduler->starter().empty() == scheduler->name().empty());
  }
  CHECK(&scheduler_here({}) == &no_scheduler());
  CHECK(&scheduler_of(local_allocation("node1")) == &no_scheduler());
}

TEST_CASE("ranks do not inherit what another task was told, and agents are the last words of a step") {
  const SchedulerStep step{{"node1", "node2"}, {{0, 2}, {1, 3, 4}}};
  SchedulerJob job;
  job.id = "7";
  job.nodes = {{"node1", 4, 4, 0}, {"node2", 4, 4, 0}};
  for (const Scheduler* const scheduler : schedulers()) {
    CAPTURE(scheduler->name());
    job.scheduler = scheduler->name();
    CHECK(&scheduler_of(job) == scheduler);
    for (const auto& [name, value] : scheduler->rank_variables(step, 1, 2)) {
      CAPTURE(name, value);
      CHECK(is_of_scheduler_task(name));
      CHECK(scheduler->rank_variables(step, 0, 1).contains(name));
    }
    for (const auto input : {Scheduler::AgentInput::kLink, Scheduler::AgentInput::kJoin}) {
      const auto words = scheduler->agent_command(job, {"node2"}, input, "/opt/ddlrun", "abc");
      REQUIRE(words.size() >= 3);
      CHECK(std::vector<std::string>(words.end() - 3, words.end()) ==
            std::vector<std::string>{"/opt/ddlrun", agent_option(input), "abc"});
    }
  }
}
