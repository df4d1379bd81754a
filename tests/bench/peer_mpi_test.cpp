#include "bench/peer_mpi.h"

#include <filesystem>
#include <fstream>

#include "base/process_tree.h"
#include "bench/peers.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace ddl::bench {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("an MPI is known by what its launcher says of its version") {
  using Family = MpiVersion::Family;
  const auto known = [](std::string_view text) { return parse_mpi_version(text).value(); };
  const MpiVersion open_mpi = known("mpiexec (Open MPI) 5.0.11\n\nReport bugs to https://example.org/\n");
  CHECK(open_mpi.label() == "Open MPI 5.0.11");
  CHECK(open_mpi.family == Family::kOpenMpi);
  CHECK(known("mpiexec (OpenRTE) 4.1.8\n").label() == "Open MPI 4.1.8");
  const MpiVersion mpich = known("HYDRA build details:\n    Version:              5.0.2\n    CC:   cc\n");
  CHECK(mpich.label() == "MPICH 5.0.2");
  CHECK(mpich.family == Family::kMpich);
  const MpiVersion intel =
      known("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: 1)\n");
  CHECK(intel.label() == "Intel MPI 2021.18.1");
  CHECK(intel.family == Family::kMpich);
  CHECK_FALSE(parse_mpi_version("slurm 22.05.8\n"));
}

TEST_CASE("an MPI is found in its folder, and has two contenders") {
  namespace fs = std::filesystem;
  REQUIRE(become_subreaper());
  const test::TemporaryDirectory folder;
  fs::create_directory(folder / "bin");
  const fs::path launcher = folder / "bin/mpiexec";
  std::ofstream(launcher) << "#!/bin/sh\necho 'mpiexec (Open MPI) 9.1.0'\n";
  CHECK_THAT(find_peer_mpi("mine=" + folder.path()).error().message(), Contains("bin/mpiexec"));
  fs::permissions(launcher, fs::perms::owner_all);
  const auto mpi = find_peer_mpi("mine=" + folder.path());
  if (!mpi) FAIL(mpi.error().message());
  CHECK(mpi->version.label() == "Open MPI 9.1.0");
  CHECK(mpi->launcher() == launcher);
  CHECK(mpi->environment().at("LD_LIBRARY_PATH") == folder / "lib");
  const std::vector<std::string> names = contender_names(1, {*mpi});
  CHECK(std::find(names.begin(), names.end(), "mine") != names.end());
  CHECK(std::find(names.begin(), names.end(), "mine-tuned") != names.end());
}

TEST_CASE("an MPI that is not there is refused with what to do") {
  REQUIRE(become_subreaper());
  CHECK_THAT(find_peer_mpi("=/usr").error().message(), Contains("NAME=FOLDER"));
  CHECK_THAT(find_peer_mpi("mine=").error().message(), Contains("NAME=FOLDER"));
  CHECK_THAT(find_peer_mpi("no-such-mpi").error().message(), Contains("scripts/frameworks"));
}

}  // namespace
}  // namespace ddl::bench
