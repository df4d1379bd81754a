// Programs of mpi4py with each MPI: under ddlrun's agents, and under --launcher mpirun with the mpirun of that MPI; on
// this host, over two hosts and in Slurm.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <set>

#include "base/text.h"
#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "frameworks/environment.h"
#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

std::string program(const std::string& name) { return std::string(DDL_FRAMEWORK_PROGRAMS) + "/" + name; }

/// A virtual environment with an MPI: its own launcher is the first in PATH.
struct Mpi {
  std::string name;
  std::string python;
  ddl::Environment environment;
};

std::optional<Mpi> mpi_of(const std::string& name) {
  const auto python = python_of(name);
  if (!python) return std::nullopt;
  const char* const path = std::getenv("PATH");
  const std::string bin = python->substr(0, python->rfind('/'));
  return Mpi{name, *python, {{"PATH", bin + ":" + (path != nullptr ? path : "/usr/bin:/bin")}}};
}

/// What is on standard error but ddlrun's own lines. Nor a line of Open MPI 5's mpirun that comes and goes with the speed
/// at which its ssh starts, and what Slurm says of the test's TMPDIR, which the nodes do not have.
std::set<std::string> lines_of_mpi(const std::string& err) {
  std::set<std::string> lines;
  for (const std::string_view line : split(err, '\n')) {
    const auto contains = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
    const bool is_race = contains("plm:ssh: Warning: setpgid(");
    const bool is_of_test = contains("TMPDIR") && line.starts_with("slurmstepd-") && !contains("/ddlrun-");
    if (!trim(line).empty() && !line.starts_with("ddlrun: ") && !is_race && !is_of_test) lines.emplace(line);
  }
  return lines;
}

/// Under the MPI's own launcher, on this host: what an MPI complains about here.
std::set<std::string> own_complaints(const Mpi& mpi) {
  Words words = {"mpiexec", "-n", "2"};
  if (mpi.name.starts_with("openmpi")) words.emplace_back("--oversubscribe");
  if (mpi.name.starts_with("openmpi") && ::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {mpi.python, program("mpi_sums.py"), "1"});
  e2e::Command command;
  command.argv = words;
  command.environment = mpi.environment;
  command.patience = kPatience;
  const e2e::Scratch scratch;
  e2e::Job job(scratch, command);
  CHECK(job.wait() == 0);
  INFO(mpi.name << " under its own mpiexec: " << job.out() << job.err());
  CHECK(e2e::occurrences(job.out(), ": right\n") == 2);
  return lines_of_mpi(job.err());
}

/// Two ranks add, learn each other's hosts and exchange a large message, started by ddlrun and by the MPI's launcher.
void test_mpi(const std::string& name, const std::vector<Place>& places) {
  const auto mpi = mpi_of(name);
  if (!mpi) return;
  const std::set<std::string> own = own_complaints(*mpi);
  for (const Place place : places) {
    for (const bool by_mpirun : {false, true}) {
      Words words = {"-np", "2", "--map-by", "node"};
      if (place == Place::kHere) words.emplace_back("--oversubscribe");
      if (place == Place::kTwoHosts) words.insert(words.end(), {"-H", "node1:2,node2:2"});
      // The hosts have two networks, which MPICH before 4.3 and Intel MPI mix, also under their own mpiexec.
      if (place != Place::kHere)
        words.insert(words.end(), {"-x", "FI_TCP_IFACE=eth0", "-x", "FI_SOCKETS_IFACE=eth0"});
      if (by_mpirun) words.insert(words.end(), {"--launcher", "mpirun"});
      words.insert(words.end(), {mpi->python, program("mpi_sums.py"), place == Place::kHere ? "1" : "2"});
      const Output output = output_of(place, words, mpi->environment);
      INFO(name << (by_mpirun ? " by its mpirun" : " by agents") << ", place " << static_cast<int>(place)
                << ": exit code " << output.status << "\n"
                << output.out << output.err);
      CHECK(output.status == 0);
      CHECK(e2e::occurrences(output.out, ": right\n") == 2);
      for (const std::string& line : lines_of_mpi(output.err)) {
        INFO("not printed under its own launcher: " << line);
        CHECK(own.contains(line));
      }
    }
  }
}

TEST_CASE("programs of Open MPI 4.1 run here", "[openmpi-4.1]") { test_mpi("openmpi-4.1", {Place::kHere}); }
TEST_CASE("programs of Open MPI 4.1 run on two hosts and in Slurm", "[openmpi-4.1_on_hosts]") {
  test_mpi("openmpi-4.1", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of the newest Open MPI 5.0 run here", "[openmpi-5.0]") {
  test_mpi("openmpi-5.0", {Place::kHere});
}
TEST_CASE("programs of the newest Open MPI 5.0 run on two hosts and in Slurm", "[openmpi-5.0_on_hosts]") {
  test_mpi("openmpi-5.0", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of Open MPI 5.0.8 run here", "[openmpi-5.0.8]") {
  test_mpi("openmpi-5.0.8", {Place::kHere});
}
TEST_CASE("programs of Open MPI 5.0.8 run on two hosts and in Slurm", "[openmpi-5.0.8_on_hosts]") {
  test_mpi("openmpi-5.0.8", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of MPICH 3.4 run here", "[mpich-3.4]") { test_mpi("mpich-3.4", {Place::kHere}); }
TEST_CASE("programs of MPICH 3.4 run on two hosts and in Slurm", "[mpich-3.4_on_hosts]") {
  test_mpi("mpich-3.4", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of MPICH 4.0 run here", "[mpich-4.0]") { test_mpi("mpich-4.0", {Place::kHere}); }
TEST_CASE("programs of MPICH 4.0 run on two hosts and in Slurm", "[mpich-4.0_on_hosts]") {
  test_mpi("mpich-4.0", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of MPICH 4.1 run here", "[mpich-4.1]") { test_mpi("mpich-4.1", {Place::kHere}); }
TEST_CASE("programs of MPICH 4.1 run on two hosts and in Slurm", "[mpich-4.1_on_hosts]") {
  test_mpi("mpich-4.1", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of MPICH 4.2 run here", "[mpich-4.2]") { test_mpi("mpich-4.2", {Place::kHere}); }
TEST_CASE("programs of MPICH 4.2 run on two hosts and in Slurm", "[mpich-4.2_on_hosts]") {
  test_mpi("mpich-4.2", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of MPICH 4.3 run here", "[mpich-4.3]") { test_mpi("mpich-4.3", {Place::kHere}); }
TEST_CASE("programs of MPICH 4.3 run on two hosts and in Slurm", "[mpich-4.3_on_hosts]") {
  test_mpi("mpich-4.3", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of MPICH 5.0 run here", "[mpich-5.0]") { test_mpi("mpich-5.0", {Place::kHere}); }
TEST_CASE("programs of MPICH 5.0 run on two hosts and in Slurm", "[mpich-5.0_on_hosts]") {
  test_mpi("mpich-5.0", {Place::kTwoHosts, Place::kSlurm});
}
TEST_CASE("programs of Intel MPI 2021 run here", "[impi-2021]") { test_mpi("impi-2021", {Place::kHere}); }
TEST_CASE("programs of Intel MPI 2021 run on two hosts and in Slurm", "[impi-2021_on_hosts]") {
  test_mpi("impi-2021", {Place::kTwoHosts, Place::kSlurm});
}

TEST_CASE("MPI_Comm_spawn ends with the MPI's error, and ddlrun says who called it, once", "[mpi_spawn]") {
  for (const char* const name :
       {"openmpi-4.1", "openmpi-5.0", "mpich-3.4", "mpich-4.2", "mpich-5.0", "impi-2021"}) {
    const auto mpi = mpi_of(name);
    if (!mpi) continue;
    const Output output =
        output_of(Place::kHere, {"-np", "2", "--oversubscribe", mpi->python, program("mpi_spawn.py")},
                  mpi->environment);
    INFO(name << ": exit code " << output.status << "\n" << output.out << output.err);
    CHECK(output.status == 0);
    CHECK(e2e::occurrences(output.out, ", and sums 2: right\n") == 2);
    CHECK(e2e::occurrences(output.out, " was refused by error class ") == 2);
    CHECK(e2e::occurrences(output.err, " called MPI_Comm_spawn and got an error") == 1);
    CHECK(lines_of_mpi(output.err).empty());
  }
}

TEST_CASE("ranks that have loaded different MPIs are named", "[mpi_mixed]") {
  for (const auto& [first, second] : {std::pair{"openmpi-5.0", "mpich-4.2"}, {"mpich-4.2", "mpich-5.0"}}) {
    const auto one = mpi_of(first), other = mpi_of(second);
    if (!one || !other) continue;
    CAPTURE(first, second);
    const e2e::Scratch scratch;
    e2e::Command command = e2e::ddlrun(
        {"-np", "2", "--oversubscribe", "sh", "-c",
         "if [ $RANK = 0 ]; then exec " + one->python + " \"$@\"; else exec " + other->python + " \"$@\"; fi",
         "sh", program("mpi_sums.py"), "1"});
    command.patience = kPatience;
    e2e::Job job(scratch, command);
    job.wait_for("which is another MPI or another version");
    // They may wait for each other, or have failed.
    job.send(SIGTERM);
    (void)job.wait_and_require_nothing_left();
    CHECK_THAT(job.err(), Contains("ddlrun: warning: rank ") && Contains(" has loaded ") &&
                              Contains(one->python.substr(0, one->python.find("/bin/"))) &&
                              Contains(other->python.substr(0, other->python.find("/bin/"))));
  }
}

TEST_CASE("an mpirun that cannot serve the MPI of the program's environment is reported", "[mpi_mixed]") {
  const auto mpich = mpi_of("mpich-4.2"), open_mpi = mpi_of("openmpi-5.0");
  if (!mpich || !open_mpi) return;
  const Output output = output_of(
      Place::kHere, {"-np", "2", "--oversubscribe", "--launcher", "mpirun", open_mpi->python, "-c", "pass"},
      mpich->environment);
  CHECK_THAT(output.err, Contains("ddlrun: warning: ") && Contains("is of MPICH's hydra 4.2") &&
                             Contains("has Open MPI (") && Contains("--mpirun "));
}

}  // namespace
}  // namespace ddl::frameworks
