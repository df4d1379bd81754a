#include "frameworks/environment.h"

#include <cstdio>

#include "base/text.h"
#include "e2e/harness/job.h"
#include "e2e/harness/scratch.h"
#include "support/catch.h"

namespace ddl::frameworks {

std::optional<std::string> python_of(const std::string& environment) {
  const e2e::Scratch scratch;
  e2e::Command command;
  command.argv = {DDL_FRAMEWORKS_SCRIPT, "--where", environment};
  e2e::Job job(scratch, command);
  const int status = job.wait();
  if (status == 0) return std::string(trim(job.out())) + "/bin/python";
  // As scripts/frameworks --help says.
  constexpr int kMissing = 1;
  const std::string reason(trim(job.err()));
  if (status != kMissing) FAIL(reason);
  // Not by DDL_SKIP: the line is the same for all test cases, so that scripts/test lists it once.
  std::printf("SKIPPED: %s\n", reason.c_str());
  return std::nullopt;
}

}  // namespace ddl::frameworks
