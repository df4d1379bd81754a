#include "frameworks/run.h"

#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "cluster/harness/host_job.h"
#include "cluster/harness/salloc.h"
#include "contract/ddlrun.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "frameworks/environment.h"
#include "support/catch.h"

namespace ddl::frameworks {

Output output_of(Place place, std::vector<std::string> arguments, const ddl::Environment& environment,
                 const std::string& drained_at) {
  // For what torch compiles: it makes a folder in /tmp already when it is imported. Every login may write there.
  const e2e::Scratch caches(place == Place::kHere ? "/tmp" : "/home/shared");
  REQUIRE(::chmod(caches.path().c_str(), 0777) == 0);
  arguments.insert(arguments.begin(), {"-x", "TORCHINDUCTOR_CACHE_DIR=" + caches.path()});
  e2e::Command settings;
  settings.patience = kPatience;
  settings.environment = environment;
  if (place == Place::kHere) {
    const e2e::Scratch scratch;
    settings.argv = e2e::ddlrun(std::move(arguments)).argv;
    e2e::Job job(scratch, settings);
    if (!drained_at.empty()) {
      job.wait_for(drained_at);
      job.send(SIGUSR1);
    }
    const int status = job.wait_and_require_nothing_left();
    return {status, job.out(), job.err()};
  }
  if (place == Place::kSlurm)
    settings.argv = cluster::in_salloc({"-N", "2", "-n", "2", "-w", "node[1-2]"}).argv;
  cluster::HostJob job(std::move(arguments), settings);
  const int status = job.wait();
  return {status, job.out(), job.err()};
}

void run(Place place, const Program& program) {
  const auto python = python_of(program.environment);
  if (!python) return;
  std::vector<std::string> arguments = program.options;
  if (place == Place::kHere) arguments.emplace_back("--oversubscribe");
  if (place == Place::kTwoHosts) arguments.insert(arguments.end(), {"-H", "node1:4,node2:4"});
  if (program.has_ddl) arguments.insert(arguments.end(), {"-x", "PYTHONPATH=" DDL_FRAMEWORKS_PACKAGE});
  arguments.insert(arguments.end(),
                   {*python, (std::filesystem::path(DDL_FRAMEWORK_PROGRAMS) / program.file).string()});
  arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
  const Output result = output_of(place, arguments, {}, program.drained_at);
  INFO(program.environment << ", " << program.file << ": exit code " << result.status << "\n"
                           << result.out << "\n"
                           << result.err);
  CHECK(result.status == (program.drained_at.empty() ? 0 : contract::kDrained));
  CHECK(e2e::occurrences(result.out, program.printed) == program.lines);
}

}  // namespace ddl::frameworks
