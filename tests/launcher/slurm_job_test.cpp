// Slurm's variables, as recorded from a real Slurm 22.05 for the options in the titles of the cases.
#include "launcher/scheduler/slurm.h"

#include "base/text.h"
#include "launcher/plan/placement.h"
#include "launcher/scheduler/find_allocation.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;

namespace {

Environment job_on(const std::string& nodes, const std::string& cpus, const std::string& tasks) {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_JOBID", "7"},
          {"SLURM_JOB_NODELIST", nodes},
          {"SLURM_JOB_CPUS_PER_NODE", cpus},
          {"SLURM_TASKS_PER_NODE", tasks}};
}

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

SchedulerJob slurm_job_of(const Environment& environment) {
  const auto job = slurm_job(environment);
  INFO((job ? std::string() : job.error().message()));
  REQUIRE(job);
  REQUIRE(*job);
  return **job;
}

std::string error_of(const Environment& environment) {
  const auto job = slurm_job(environment);
  return job ? "" : job.error().message();
}

/// Ranks of each node: "8 8".
std::string placed(const SchedulerJob& job, int ranks) {
  const Allocation allocation = allocation_of(job);
  std::vector<int> slots;
  for (const AllocatedNode& node : allocation.nodes) slots.push_back(node.slots.value_or(0));
  JobSpec spec;
  spec.num_ranks = ranks;
  const auto placement = place(spec, allocation, slots);
  if (!placement) return placement.error().message();
  std::vector<std::string> counts;
  for (const PlacedNode& node : placement->nodes) counts.push_back(std::to_string(node.ranks.size()));
  return ddl::join(counts, " ");
}

}  // namespace

TEST_CASE("a number for each node") {
  CHECK(parse_slurm_counts("2(x3),1", 4).value() == std::vector<int>{2, 2, 2, 1});
  CHECK(parse_slurm_counts("128", 1).value() == std::vector<int>{128});
  CHECK(parse_slurm_counts("8(x2),128(x2)", 4).value() == std::vector<int>{8, 8, 128, 128});
  for (const char* wrong :
       {"", "x", "2(x", "2(x)", "2(x3", "2x3", "0", "-1", "2(x0)", "2,", "2(x3)1", "99999999999"})
    CHECK_FALSE(parse_slurm_counts(wrong, 10));
  CHECK_THAT(parse_slurm_counts("2(x2000000000)", 4).error().message(), Catch::Contains("more than 4 nodes"));
}

TEST_CASE("salloc -N 1 --gpus 8 on a node that the job has exclusively") {
  const SchedulerJob job = slurm_job_of(with(job_on("node3", "128", "128"), {{"SLURM_GPUS", "8"}}));
  CHECK(job.nodes == std::vector<SchedulerNode>{{"node3", 128, 128, 8}});
  CHECK(implied_num_ranks({}, allocation_of(job)) == 8);
  CHECK(placed(job, 8) == "8");
  CHECK(placed(job, 128) == "128");
  CHECK(placed(job, 129) ==
        "129 ranks asked for, and Slurm job 7 (1 node, 8 GPUs, 128 CPUs) has 128 slots; ask for -np 128, or "
        "add "
        "--oversubscribe to go beyond them");
}

TEST_CASE("salloc -N 2 --gpus 16: one rank for each GPU, and with -np more, up to the CPUs") {
  const SchedulerJob job =
      slurm_job_of(with(job_on("node[3-4]", "128(x2)", "128(x2)"), {{"SLURM_GPUS", "16"}}));
  CHECK(implied_num_ranks({}, allocation_of(job)) == 16);
  CHECK(placed(job, 16) == "8 8");
  CHECK(placed(job, 20) == "10 10");
}

TEST_CASE("salloc -N 2 -n 5 -c 2: the tasks that were asked for are the ranks") {
  const SchedulerJob job =
      slurm_job_of(with(job_on("node[1-2]", "8,2", "4,1"),
                        {{"SLURM_NTASKS", "5"}, {"SLURM_NPROCS", "5"}, {"SLURM_CPUS_PER_TASK", "2"}}));
  CHECK(implied_num_ranks({}, allocation_of(job)) == 5);
  CHECK(placed(job, 5) == "4 1");
  CHECK(placed(job, 10) == "8 2");
  CHECK_THAT(placed(job, 11), Catch::Contains("Slurm job 7 (2 nodes, 5 tasks, 10 CPUs) has 10 slots"));
}

TEST_CASE("-N 2 --ntasks-per-node=2 --gpus-per-node=4: one rank for each task, up to the GPUs with -np") {
  const SchedulerJob job = slurm_job_of(with(job_on("node[3-4]", "2(x2)", "2(x2)"),
                                             {{"SLURM_NTASKS", "4"}, {"SLURM_GPUS_PER_NODE", "mi250:4"}}));
  CHECK(implied_num_ranks({}, allocation_of(job)) == 4);
  CHECK(placed(job, 4) == "2 2");
  CHECK(placed(job, 8) == "4 4");
}

TEST_CASE("GPUs by task, of several types, and of unknown number") {
  CHECK(slurm_job_of(with(job_on("n1", "4", "4"), {{"SLURM_NTASKS", "4"}, {"SLURM_GPUS_PER_TASK", "2"}}))
            .nodes[0]
            .gpus == 8);
  CHECK(
      slurm_job_of(with(job_on("n1", "4", "4"), {{"SLURM_GPUS_PER_NODE", "a100:2,v100:1"}})).nodes[0].gpus ==
      3);
  CHECK(slurm_job_of(with(job_on("n[1-2]", "4(x2)", "1(x2)"), {{"SLURM_GPUS", "5"}})).nodes[0].gpus == 0);
  CHECK(slurm_job_of(with(job_on("n1", "4", "1"), {{"SLURM_GPUS", "many"}})).nodes[0].gpus == 0);
  CHECK(implied_num_ranks({}, allocation_of(slurm_job_of(job_on("n[1-3]", "4(x3)", "4(x3)")))) == 3);
}

TEST_CASE("outside of Slurm there is no job to use") {
  CHECK_FALSE(slurm_job({}).value());
  CHECK_FALSE(slurm_job({{"SLURM_CONF", "/etc/slurm.conf"}, {"SLURM_JOB_ID", ""}}).value());
  // Defaults that a user has set for sbatch and srun.
  CHECK_FALSE(slurm_job({{"SLURM_NTASKS", "4"}, {"SLURM_CPU_BIND", "cores"}}).value());
}

TEST_CASE("a heterogeneous job is refused, and treated neither as no job nor as its first group") {
  const auto refusal = Catch::Contains("Slurm job 7 is a heterogeneous job of 2 groups");
  // salloc -n2 : -n1 sets only variables with the number of a group; a script and a step have others.
  CHECK_THAT(error_of({{"SLURM_JOB_ID", "7"},
                       {"SLURM_HET_SIZE", "2"},
                       {"SLURM_JOB_ID_HET_GROUP_0", "7"},
                       {"SLURM_JOB_NODELIST_HET_GROUP_0", "node1"},
                       {"SLURM_NTASKS", "3"}}),
             refusal && Catch::Contains("srun --het-group"));
  CHECK_THAT(error_of(with(job_on("node1", "2", "2"), {{"SLURM_HET_SIZE", "2"}})), refusal);
  CHECK_THAT(error_of({{"SLURM_JOB_ID", "7"}, {"SLURM_PACK_SIZE", "2"}}), refusal);
  CHECK_THAT(error_of({{"SLURM_JOB_ID_HET_GROUP_0", "7"}}),
             Catch::Contains("Slurm job 7 is a heterogeneous"));
  // Steps of ordinary jobs have this one.
  CHECK(slurm_job(with(job_on("node1", "2", "2"), {{"SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", "2"}})).value());
}

TEST_CASE("incomplete variables of a job are an error, not the absence of a job") {
  CHECK_THAT(error_of({{"SLURM_JOB_ID", "7"}}),
             Catch::Contains("SLURM_JOB_ID=7 means that this is inside a Slurm job") &&
                 Catch::Contains("SLURM_JOB_NODELIST"));
  for (const char* name : {"SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_ID",
                           "SLURM_STEPID", "SLURM_PROCID"})
    CHECK_THAT(error_of({{name, "0"}}), Catch::Contains(std::string(name) + "=0 means that this is inside"));
}

TEST_CASE("ddlrun in each of several tasks of srun is refused") {
  const Environment four = with(job_on("n1", "4", "4"), {{"SLURM_STEP_NUM_TASKS", "4"}});
  for (const char* task : {"0", "3"}) {
    const auto alone = check_single_task(with(four, {{"SLURM_PROCID", task}}));
    REQUIRE_FALSE(alone);
    CHECK_THAT(alone.error().message(), Catch::Contains("one of 4 tasks of a step of Slurm job 7"));
  }
  CHECK(check_single_task(job_on("n1", "4", "4")));
  CHECK(check_single_task(with(job_on("n1", "1", "1"), {{"SLURM_STEP_NUM_TASKS", "1"}})));
  // srun -n 4 --pty bash: one shell.
  const Environment pty = with(four, {{"SLURM_PTY_PORT", "4711"}});
  CHECK(check_single_task(with(pty, {{"SLURM_PROCID", "0"}})));
  CHECK_FALSE(check_single_task(with(pty, {{"SLURM_PROCID", "1"}})));
}

TEST_CASE("in the shell of srun --pty the job is the whole job") {
  const auto in_step = [](Environment job, const std::string& tasks, const std::string& nodes) {
    return with(std::move(job), {{"SLURM_STEP_NUM_TASKS", tasks}, {"SLURM_STEP_NUM_NODES", nodes}});
  };
  // salloc -N2 -n3, then srun -N1 -n1 --pty bash: tasks are those of the step, nodes and CPUs those of the job.
  const SchedulerJob part = slurm_job_of(in_step(
      with(job_on("node[1-2]", "2,1", "1"), {{"SLURM_NTASKS", "1"}, {"SLURM_NNODES", "1"}}), "1", "1"));
  CHECK(part.nodes == std::vector<SchedulerNode>{{"node1", 2, 2, 0}, {"node2", 1, 1, 0}});
  CHECK_FALSE(part.num_tasks);
  CHECK(placed(part, 3) == "2 1");
  // The same with --preserve-env, as salloc's own shell on a node is started.
  const SchedulerJob preserved =
      slurm_job_of(in_step(with(job_on("node[1-2]", "2,1", "2,1"), {{"SLURM_NTASKS", "3"}}), "1", "1"));
  CHECK(preserved.num_tasks == 3);
  // srun --gpus 8 --pty bash: its one task is the shell.
  const SchedulerJob gpus = slurm_job_of(
      in_step(with(job_on("node3", "128", "1"), {{"SLURM_NTASKS", "1"}, {"SLURM_GPUS", "8"}}), "1", "1"));
  CHECK(implied_num_ranks({}, allocation_of(gpus)) == 8);
  // srun -N1 -n3 --pty bash
  const SchedulerJob three =
      slurm_job_of(in_step(with(job_on("n1", "3", "3"), {{"SLURM_NTASKS", "3"}}), "3", "1"));
  CHECK(implied_num_ranks({}, allocation_of(three)) == 3);
}

TEST_CASE("variables that contradict each other are named") {
  CHECK_THAT(error_of(job_on("n[1-3]", "4(x2)", "1(x3)")),
             Catch::Contains("SLURM_JOB_CPUS_PER_NODE") && Catch::Contains("2 nodes, but the job has 3"));
  CHECK_THAT(error_of(job_on("n[1-3]", "4(x3)", "1(x4)")), Catch::Contains("SLURM_TASKS_PER_NODE"));
  CHECK_THAT(error_of(job_on("n[3-1]", "4", "1")), Catch::Contains("SLURM_JOB_NODELIST"));
  CHECK_THAT(error_of(job_on("n1 -oProxyCommand=x", "4", "1")), Catch::Contains("SLURM_JOB_NODELIST"));
}

TEST_CASE("-H chooses among the job's nodes") {
  const SchedulerJob job = slurm_job_of(with(job_on("node[1-4]", "8(x4)", "2(x4)"), {{"SLURM_NTASKS", "8"}}));
  const auto chosen = [&](const std::string& hosts) {
    JobSpec spec;
    spec.hosts = hosts;
    return allocation_of(job, make_allocation(spec, "", "node2.site").value(), "node2.site");
  };
  const auto two = chosen("node3:4,NODE1");
  REQUIRE(two);
  CHECK(two->nodes.size() == 2);
  CHECK(two->nodes[0].name == "node3");
  CHECK(two->nodes[0].slots == 4);
  CHECK(two->nodes[1].name == "node1");
  CHECK(two->nodes[1].slots == 2);
  REQUIRE(chosen("localhost:3"));
  CHECK(chosen("localhost:3")->nodes.at(0).name == "node2");
  CHECK(without_hosts(allocation_of(job), "node[1-3]").value().nodes.at(0).name == "node4");
  CHECK_THAT(without_hosts(allocation_of(job), "node[1-9]").error().message(),
             Catch::Contains("leaves no host"));
  CHECK_THAT(chosen("node9").error().message(),
             Catch::Contains("node9 is not a node of Slurm job 7 (4 nodes, 8 tasks"));
  CHECK_THAT(chosen("me@node1:2").error().message(), Catch::Contains("no user and no port"));
}
