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
