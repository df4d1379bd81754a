#include "launcher/mpi/mpi_query.h"

#include <filesystem>
#include <fstream>

#include "launcher/scheduler/slurm.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

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

TEST_CASE("an mpirun that cannot serve the MPI of the command's environment is reported") {
  namespace fs = std::filesystem;
  using ddl::launcher::MpiFlavor;
  const ddl::test::TemporaryDirectory folder;
  for (const char* name : {"mpich/bin", "mpich/lib", "open/bin", "open/lib", "plain/bin"})
    fs::create_directories(folder / name);
  for (const char* name : {"mpich/bin/python", "mpich/bin/mpirun", "mpich/lib/libmpi.so.12",
                           "open/bin/python", "open/lib/libmpi.so.40", "plain/bin/python"}) {
    std::ofstream(folder / name) << "#!/bin/sh\n";
    fs::permissions(folder / name, fs::perms::owner_all);
  }
  const auto warning = [&](const std::string& command, MpiFlavor flavor, const std::string& path = "/bin") {
    return ddl::launcher::mismatch_with_environment(
        command, folder.path(), {"/opt/bin/mpirun", "Some MPI 4.1", flavor, false, "here"}, {{"PATH", path}});
  };
  const std::string found = warning(folder / "mpich/bin/python", MpiFlavor::kPrrte);
  CHECK_THAT(found, Catch::StartsWith("/opt/bin/mpirun is of Some MPI 4.1, but the environment of ") &&
                        Catch::Contains("MPICH or Intel MPI (" + (folder / "mpich/lib/libmpi.so.12")) &&
                        Catch::Contains("--mpirun " + (folder / "mpich/bin/mpirun")));
  CHECK_FALSE(warning("mpich/bin/python", MpiFlavor::kOpenMpi4).empty());
  CHECK_THAT(warning("python", MpiFlavor::kHydra, folder / "open/bin"),
             Catch::Contains("has Open MPI (") && Catch::Contains("--mpirun FILE"));
  CHECK(warning("python", MpiFlavor::kHydra, folder / "mpich/bin").empty());
  CHECK(warning("python", MpiFlavor::kPrrte, folder / "open/bin").empty());
  CHECK(warning("plain/bin/python", MpiFlavor::kHydra).empty());
  CHECK(warning("no-such-command", MpiFlavor::kHydra).empty());
  // Both wheels are in one environment: mpi4py loads one of them.
  std::ofstream(folder / "open/lib/libmpi.so.12") << "";
  CHECK(warning("open/bin/python", MpiFlavor::kHydra).empty());
}
