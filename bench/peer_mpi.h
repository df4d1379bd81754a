// MPIs beside the one in PATH: of a wheel in a virtual environment of scripts/frameworks, or in any other folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace ddl::bench {

struct PeerMpi {
  /// Its launcher's options, and the ABI of its library, libmpi.so.40 or libmpi.so.12. Intel's is a MPICH.
  enum class Family : std::uint8_t { kOpenMpi, kMpich };

  std::string name;  ///< as --entrants takes it: "mpich-5.0"
  std::string folder;
  Family family{};
  std::string label;  ///< as its launcher says: "MPICH 5.0.2"

  std::string launcher() const { return folder + "/bin/mpiexec"; }
  /// The rank program for its ABI: "collective_mpi" or "collective_mpi_12".
  std::string program(const std::string& stem) const {
    return stem + (family == Family::kOpenMpi ? "_mpi" : "_mpi_12");
  }
  /// With which a program finds its library, and no rank is pinned.
  Environment environment() const;
  /// What its documents advise for one host, beside malloc that keeps its pages: words of its launcher, and variables.
  std::vector<std::string> tuned_words() const;
  Environment tuned_environment() const;
};

/// What "mpiexec --version" says: family and label of this MPI. Errors: kUnavailable, of no MPI that is known here.
Result<PeerMpi> parse_mpi_version(std::string_view text);

/// NAME, which scripts/frameworks makes, or NAME=FOLDER with bin/mpiexec and lib/libmpi.so in it. Errors:
/// kInvalidArgument, the text is neither; kNotFound, it is not there; kUnavailable, its launcher does not run.
Result<PeerMpi> find_peer_mpi(const std::string& text);

}  // namespace ddl::bench
