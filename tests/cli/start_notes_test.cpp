#include "cli/start_notes.h"

#include "cli/slurm_notice.h"
#include "support/catch.h"

using ddl::cli::slurm_notice;
using ddl::cli::start_notes;
using ddl::launcher::Environment;

TEST_CASE("several ddlruns under one srun are warned of, a lone one and salloc's own step are not") {
  CHECK_FALSE(slurm_notice({}));
  CHECK_FALSE(slurm_notice({{"SLURM_JOB_ID", "5"}, {"SLURM_NTASKS", "4"}}));
  CHECK_FALSE(
      slurm_notice({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  const auto notice =
      slurm_notice({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  REQUIRE(notice);
  CHECK_THAT(*notice, Catch::Contains("inside Slurm job 5: srun started ddlrun 4 times"));
}

TEST_CASE("a variable that is to be passed on and is not set is noted") {
  ddl::launcher::JobSpec job;
  job.exports = {{"THERE", {}}, {"MISSING", {}}, {"GIVEN", "1"}};
  const auto notes = start_notes(job, {{"THERE", ""}});
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("-x MISSING: MISSING is not set here"));
  CHECK(start_notes(job,
                    {{"THERE", ""}, {"MISSING", "x"}, {"SLURM_JOB_ID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}})
            .size() == 1);
}
