#include "cluster/harness/salloc.h"

#include "cluster/harness/cluster.h"
#include "e2e/harness/scratch.h"
#include "support/catch.h"

namespace ddl::cluster {

e2e::Command in_salloc(const std::vector<std::string>& options) {
  e2e::Command settings;
  settings.argv = {"salloc", "-Q"};
  settings.argv.insert(settings.argv.end(), options.begin(), options.end());
  return settings;
}

std::string output_as_login(const std::vector<std::string>& words, std::chrono::seconds patience) {
  const e2e::Scratch scratch;
  e2e::Command command = as_login(tested_login(), words);
  command.directory = "/home/shared";
  e2e::Job job(scratch, command);
  (void)job.ends_within(patience);
  const int status = job.wait();
  INFO(job.err());
  REQUIRE(status == 0);
  return job.out();
}

}  // namespace ddl::cluster
