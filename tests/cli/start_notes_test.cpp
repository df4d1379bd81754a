#include "cli/start_notes.h"

#include "cli/slurm_notice.h"
#include "support/catch.h"

using ddl::cli::slurm_notice;
using ddl::cli::start_notes;
using ddl::launcher::Environment;

namespace {
constexpr char kThisNode[] =
    ": this version of ddlrun does not use it; it starts ranks on this node, or over ssh where -H says";
}

TEST_CASE("outside of Slurm there is nothing to say") {
  CHECK_FALSE(slurm_notice({}));
  CHECK_FALSE(slurm_notice({{"SLURM_CONF", "/etc/slurm.conf"}, {"SLURM_JOB_ID", ""}}));
}

TEST_CASE("inside an allocation ddlrun says what it sees") {
  CHECK(slurm_notice({{"SLURM_JOB_ID", "4711"},
                      {"SLURM_JOB_NODELIST", "node[1-3,7]"},
                      {"SLURM_JOB_NUM_NODES", "4"},
                      {"SLURM_NTASKS", "16"}}) ==
        "inside Slurm job 4711 (4 nodes node[1-3,7], 16 tasks)" + std::string(kThisNode));
  CHECK(slurm_notice(
            {{"SLURM_JOBID", "1"}, {"SLURM_NODELIST", "n1"}, {"SLURM_NNODES", "1"}, {"SLURM_NPROCS", "1"}}) ==
        "inside Slurm job 1 (1 node n1, 1 task)" + std::string(kThisNode));
  CHECK(slurm_notice({{"SLURM_JOB_ID", "5"}, {"SLURM_TASKS_PER_NODE", "2(x3),1"}}) ==
        "inside Slurm job 5 (2(x3),1 tasks per node)" + std::string(kThisNode));
  CHECK(slurm_notice({{"SLURM_JOB_ID", "5"}}) == "inside Slurm job 5" + std::string(kThisNode));
  CHECK(slurm_notice({{"SLURM_JOB_ID", "5"}, {"SLURM_NTASKS", "many"}, {"SLURM_JOB_NUM_NODES", "-2"}}) ==
        "inside Slurm job 5" + std::string(kThisNode));
}

TEST_CASE("several ddlruns under one srun are warned of, salloc's own step is not") {
  const auto notice =
      slurm_notice({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  REQUIRE(notice);
  CHECK_THAT(*notice, Catch::Contains("srun started ddlrun 4 times"));
  CHECK(
      slurm_notice({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}}) ==
      "inside Slurm job 5" + std::string(kThisNode));
}

TEST_CASE("a variable that is to be passed on and is not set is noted") {
  ddl::launcher::JobSpec job;
  job.exports = {{"THERE", {}}, {"MISSING", {}}, {"GIVEN", "1"}};
  const auto notes = start_notes(job, {{"THERE", ""}});
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("-x MISSING: MISSING is not set here"));
  CHECK(start_notes(job, {{"THERE", ""}, {"MISSING", "x"}, {"SLURM_JOB_ID", "1"}}).size() == 1);
}
