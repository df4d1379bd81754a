// libddl's collectives by the MPIs of wheels: by the standard ABI of MPI 5, or by the MPI's own, which mpi4py uses. Each
// rank also checks that it has no other MPI.
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::frameworks {
namespace {

using Words = std::vector<std::string>;

/// Both have libmpi_abi.so.1 beside libmpi.so.12.
const Words kWithAbi = {"mpich-5.0", "impi-2021"};

const Words kOptions = {"-np", "2", "--map-by", "node", "--cpu-operations", "mpi"};

/// Sums in a process whose MPI is initialised in this way (programs/ddl_over_mpi.py).
void sum(Place place, const std::string& way, const Words& environments, const Words& more = {}) {
  for (const std::string& environment : environments) {
    Words options = kOptions;
    options.insert(options.end(), more.begin(), more.end());
    run(place, {.environment = environment,
                .file = "ddl_over_mpi.py",
                .options = std::move(options),
                .arguments = {way}});
  }
}

TEST_CASE("libddl finds an MPI of the Python environment and initialises it by the standard ABI",
          "[mpi_abi]") {
  sum(Place::kHere, "libddl", kWithAbi, {"-x", "DDL_MPI=abi"});
}

TEST_CASE("libddl uses the MPI that a program has initialised by the standard ABI", "[mpi_abi]") {
  sum(Place::kHere, "abi", kWithAbi);
}

TEST_CASE("libddl uses the MPI that mpi4py has initialised, and not its other library", "[mpi_abi]") {
#ifdef DDL_HAS_MODULE_MPICH
  sum(Place::kHere, "mpi4py", {"mpich-3.4", "mpich-5.0", "impi-2021"});
#endif
#ifdef DDL_HAS_MODULE_OPENMPI
  sum(Place::kHere, "mpi4py", {"openmpi-5.0"});
#endif
#if !defined(DDL_HAS_MODULE_MPICH) || !defined(DDL_HAS_MODULE_OPENMPI)
  DDL_SKIP("libddl was built without MPICH's or without Open MPI's module; scripts/setup installs both");
#endif
}

TEST_CASE("a process with two libraries of MPI is told their names", "[mpi_abi]") {
  sum(Place::kHere, "two", kWithAbi);
}

TEST_CASE("libddl sums by the standard ABI over two hosts", "[mpi_abi_on_hosts]") {
  // Left to itself Intel MPI takes an interface of node1 that reaches no other host.
  sum(Place::kTwoHosts, "libddl", kWithAbi, {"-x", "DDL_MPI=abi", "-x", "FI_TCP_IFACE=eth0"});
}

TEST_CASE("libddl's whole suite conforms by the standard ABI", "[mpi_abi]") {
  for (const std::string& environment : kWithAbi) {
    const auto python = python_of(environment);
    if (!python) continue;
    Words arguments = kOptions;
    arguments.insert(arguments.end(), {"--oversubscribe", "-x", "DDL_MPI=abi", DDL_CONFORMANCE_PROGRAM});
    e2e::Command command = e2e::ddlrun(std::move(arguments));
    command.environment["VIRTUAL_ENV"] = std::filesystem::path(*python).parent_path().parent_path();
    command.patience = std::chrono::minutes(10);
    const e2e::Scratch scratch;
    e2e::Job job(scratch, command);
    const int status = job.wait_and_require_nothing_left();
    INFO(environment << ": exit code " << status << "\n" << job.out() << "\n" << job.err());
    CHECK(status == 0);
    CHECK(e2e::occurrences(job.out(), "conforms: rank ") == 2);
  }
}

}  // namespace
}  // namespace ddl::frameworks
