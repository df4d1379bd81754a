// MPIs beside the one in PATH: of a wheel in a virtual environment of scripts/frameworks, or in any other folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace ddl::bench {

/// What an MPI's launcher says of itself.
struct MpiVersion {
  /// Its options, and the ABI of its library, libmpi.so.40 or libmpi.so.12. Intel's is a MPICH.
  enum class Family : std::uint8_t { kOpenMpi, kMpich };

  Family family{};
  std::string name;    ///< "MPICH"
  std::string number;  ///< "5.0.2"

  std::string label() const { return name + " " + number; }
};

/// From the output of "mpiexec --version". Errors: kUnavailable, of no MPI that is known here.
Result<MpiVersion> parse_mpi_version(std::string_view text);

/// Asks the launcher at this path. Errors: kUnavailable, also if it does not run.
Result<MpiVersion> version_of_mpi(const std::string& launcher);

struct PeerMpi {
  std::string name;  ///< as --entrants takes it: "mpich-5.0"
  std::string folder;
  MpiVersion version;

  std::string launcher() const { return folder + "/bin/mpiexec"; }
  /// The rank program for its ABI: "collective_mpi" or "collective_mpi_12".
  std::string program(const std::string& stem) const {
    return stem + (version.family == MpiVersion::Family::kOpenMpi ? "_mpi" : "_mpi_12");
  }
  /// With which a program finds its library, and no rank is pinned.
  Environment environment() const;
  /// What its documents advise for one host, beside malloc that keeps its pages: words of its launcher, and variables.
  std::vector<std::string> tuned_words() const;
  Environment tuned_environment() const;
};

/// NAME, which scripts/frameworks makes, or NAME=FOLDER with bin/mpiexec and lib/libmpi.so in it. Errors:
/// kInvalidArgument, the text is neither; kNotFound, it is not there; those of version_of_mpi().
Result<PeerMpi> find_peer_mpi(const std::string& text);

}  // namespace ddl::bench
