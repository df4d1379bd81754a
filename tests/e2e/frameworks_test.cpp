// Programs of frameworks, unchanged: ddlrun tells them what their own launchers would.
#include <list>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

/// A program in Python of this folder, run by the system's Python.
std::vector<std::string> python(const std::string& name) {
  return {"/usr/bin/python3", std::string(DDL_E2E_SOURCES) + "/programs/" + name};
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("a program of PyTorch's DistributedDataParallel trains as one process would", "[frameworks]") {
#ifndef DDL_E2E_TORCH
  DDL_SKIP("there was no torch in /usr/bin/python3 at configuration; scripts/setup installs it");
#else
  const Scratch scratch;
  Job job(scratch, ddlrun(with({"-np", "3", "--oversubscribe"}, python("torch_program.py"))));
  const int status = job.wait_and_require_nothing_left();
  INFO(job.err());
  CHECK(status == 0);
  for (const std::string rank : {"0", "1", "2"})
    CHECK_THAT(job.out(), Contains("torch: rank " + rank + " of 3, local " + rank + ", node 0: right"));
#endif
}

TEST_CASE("a program of mpi4py finds its ranks", "[frameworks]") {
#ifndef DDL_E2E_MPI4PY
  DDL_SKIP("there was no mpi4py in /usr/bin/python3 at configuration; scripts/setup installs it");
#else
  const Scratch scratch;
  Job job(scratch,
          ddlrun(with({"-np", "3", "--oversubscribe", "--framework", "mpi"}, python("mpi4py_program.py"))));
  const int status = job.wait_and_require_nothing_left();
  INFO(job.err());
  CHECK(status == 0);
  for (const std::string rank : {"0", "1", "2"})
    CHECK_THAT(job.out(), Contains("mpi4py: rank " + rank + " of 3: sum 3, 1 hosts"));
#endif
}

TEST_CASE("jobs that run at the same time on one host have ports of their own", "[frameworks]") {
  constexpr int kJobs = 20;
  const Scratch scratch;
  std::list<Job> jobs;
  for (int i = 0; i < kJobs; ++i) {
    Command command =
        ddlrun({"-np", "1", "sh", "-c", "echo port $MASTER_PORT $JAX_COORDINATOR_ADDRESS; read -r line"});
    command.input = Command::Input::kPipe;
    jobs.emplace_back(scratch, command);
  }
  std::set<std::string> ports;
  for (Job& job : jobs) {
    job.wait_for("port ");
    job.wait_until("a line", [&] { return job.out().ends_with('\n'); });
    for (const std::string_view word : split(trim(job.out()), ' '))
      if (word != "port") ports.emplace(word.substr(word.rfind(':') + 1));
  }
  CHECK(ports.size() == 2 * kJobs);
  for (Job& job : jobs) {
    job.close_input();
    (void)job.wait();
  }
}

}  // namespace ddl::e2e
