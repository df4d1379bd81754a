// Open MPI programs under ddlrun, with no mpirun.
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

Command mpi_program(int size, std::vector<std::string> words) {
  words.insert(words.begin(),
               {"-np", std::to_string(size), "--oversubscribe", "--tag-output", program("mpi_program")});
  return ddlrun(words);
}

TEST_CASE("Open MPI ranks have the right rank and size, and their sums are right", "[open_mpi]") {
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const Scratch scratch;
    Job job(scratch, mpi_program(size, {"sum"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (int rank = 0; rank < size; ++rank) {
      const std::string self = std::to_string(rank);
      CHECK_THAT(job.out(), Contains("[" + self + "]<stdout>:mpi rank " + self + " of " +
                                     std::to_string(size) + ": 0 wrong sums\n"));
    }
  }
}

TEST_CASE("MPI_Abort(3) ends the job with exit code 3", "[open_mpi]") {
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const Scratch scratch;
    Job job(scratch, mpi_program(size, {"abort", "3"}));
    CHECK(job.wait_and_require_nothing_left() == 3);
    CHECK_THAT(job.err(), Contains("ddlrun: rank " + std::to_string(size - 1) + " on ") &&
                              Contains("aborted the job with code 3"));
  }
}

TEST_CASE("an MPI program that aborts is started again as a new MPI job", "[open_mpi]") {
  const Scratch scratch;
  const std::string run = "[ $DDL_GENERATION = 0 ] && exec " + program("mpi_program") + " abort 3; exec " +
                          program("mpi_program") + " sum";
  Job job(scratch, ddlrun({"-np", "2", "--oversubscribe", "--max-restarts", "1", "sh", "-c", run}));
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.err(),
             Contains("aborted the job with code 3") && Contains("generation 1: starting 2 ranks"));
  CHECK_THAT(job.out(), Contains("mpi rank 1 of 2: 0 wrong sums"));
}

TEST_CASE("Open MPI ranks also connect inside a Slurm allocation", "[open_mpi]") {
  const Scratch scratch;
  Command command = mpi_program(2, {"sum"});
  command.argv.insert(command.argv.begin() + 1, {"--launcher", "local"});
  command.environment = {
      {"SLURM_JOBID", "77"}, {"SLURM_JOB_ID", "77"}, {"SLURM_NTASKS", "2"}, {"SLURM_NNODES", "1"}};
  Job job(scratch, command);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(),
             Contains("mpi rank 0 of 2: 0 wrong sums") && Contains("mpi rank 1 of 2: 0 wrong sums"));
}

}  // namespace
}  // namespace ddl::e2e
