#include "launcher/mpi/mpi_query.h"

#include "launcher/scheduler/slurm.h"
#include "support/catch.h"

using ddl::launcher::parse_mpi_types;
using ddl::launcher::pmix_type_of;
using Types = std::vector<std::string>;

TEST_CASE("kinds of MPI are read as several releases of Slurm print them") {
  // 22.05.
  CHECK(parse_mpi_types("MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
                        "specific pmix plugin versions available: pmix_v4\n") ==
        Types{"pmix", "none", "cray_shasta", "pmi2", "pmix_v4"});
  // 20.11, on standard error.
  CHECK(
      parse_mpi_types("srun: MPI types are...\nsrun: cray_shasta\nsrun: none\nsrun: pmi2\nsrun: pmix_v3\n") ==
      Types{"cray_shasta", "none", "pmi2", "pmix_v3"});
  CHECK(parse_mpi_types("").empty());
  CHECK(parse_mpi_types("srun: error: cannot find plugin\n").empty());
}

TEST_CASE("a job that Slurm is ending is distinguished from one that runs") {
  for (const char* state : {"CANCELLED", "COMPLETING", "TIMEOUT", "PREEMPTED"})
    CHECK(ddl::launcher::is_ended_by_slurm(state));
  for (const char* state : {"", "RUNNING", "SUSPENDED", "NODE_FAIL", "slurm_load_jobs error"})
    CHECK_FALSE(ddl::launcher::is_ended_by_slurm(state));
  CHECK_FALSE(ddl::launcher::slurm().is_ending("no job", {}));
}

TEST_CASE("srun starts ranks by PMIx, or says which kinds of MPI it has") {
  CHECK(pmix_type_of({"none", "pmix", "pmi2"}) == "pmix");
  const auto refused = pmix_type_of({"none", "pmi2"});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("no PMIx") && Catch::Contains("none, pmi2"));
}
