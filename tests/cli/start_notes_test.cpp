#include "cli/commands/commands.h"

#include "support/catch.h"

using ddl::Environment;
using ddl::cli::start_notes;

TEST_CASE("-x with a variable that is not set gives a note") {
  ddl::launcher::JobSpec job;
  job.exports = {{"THERE", {}}, {"MISSING", {}}, {"GIVEN", "1"}};
  const auto notes = start_notes(job, {{"THERE", ""}});
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("-x MISSING: MISSING is not set here"));
}

TEST_CASE("what a shell has set for a framework is said to stay behind, unless it is passed on or kept") {
  ddl::launcher::JobSpec job;
  job.exports = {{"TF_CONFIG", std::nullopt}};
  const ddl::Environment shell{{"MASTER_ADDR", "a"}, {"RANK", "0"}, {"TF_CONFIG", "{}"}, {"PATH", "/bin"}};
  const auto notes = start_notes(job, shell);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("ranks do not inherit MASTER_ADDR, RANK of this shell") &&
                           Catch::EndsWith("--framework none keeps them"));
  job.framework = ddl::launcher::Framework::kNone;
  CHECK(start_notes(job, shell).empty());
}

TEST_CASE("a ddlrun that a rank starts says in one sentence that its job is another one") {
  const auto notes = start_notes({}, {{"DDL_RANK_RECORD", "5:0:1"}, {"HOROVOD_RANK", "3"}, {"RANK", "3"}});
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("this is rank 3 of another ddlrun; "));
}
