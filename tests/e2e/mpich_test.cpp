// MPICH programs under ddlrun, with no mpirun.
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

Command mpich_program(int size, std::vector<std::string> words) {
  words.insert(words.begin(),
               {"-np", std::to_string(size), "--oversubscribe", "--tag-output", program("mpich_program")});
  return ddlrun(words);
}

TEST_CASE("MPICH ranks have the right rank and size, and their sums are right", "[mpich]") {
  for (const int size : {1, 2, 4}) {
    CAPTURE(size);
    const Scratch scratch;
    Job job(scratch, mpich_program(size, {"sum"}));
    CHECK(job.wait_and_require_nothing_left() == 0);
    for (int rank = 0; rank < size; ++rank) {
      const std::string self = std::to_string(rank);
      CHECK_THAT(job.out(), Contains("[" + self + "]<stdout>:mpi rank " + self + " of " +
                                     std::to_string(size) + ": 0 wrong sums\n"));
    }
  }
}

TEST_CASE("MPI_Abort(3) of an MPICH rank ends the job with exit code 3", "[mpich]") {
  const Scratch scratch;
  Job job(scratch, mpich_program(3, {"abort", "3"}));
  CHECK(job.wait_and_require_nothing_left() == 3);
  CHECK_THAT(job.err(), Contains("ddlrun: rank 2 on ") && Contains("aborted the job with code 3"));
}

}  // namespace
}  // namespace ddl::e2e
