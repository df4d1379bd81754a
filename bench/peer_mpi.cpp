#include "bench/peer_mpi.h"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "bench/measured_run.h"

namespace ddl::bench {
namespace {

// The first of these that a version's text contains; the number follows it.
struct Known {
  std::string_view text;
  std::string_view name;
  MpiVersion::Family family;
};
constexpr Known kKnown[] = {
    {"(Open MPI) ", "Open MPI", MpiVersion::Family::kOpenMpi},
    {"(OpenRTE) ", "Open MPI", MpiVersion::Family::kOpenMpi},
    {"Intel(R) MPI Library for Linux* OS, Version ", "Intel MPI", MpiVersion::Family::kMpich},
    {"HYDRA build details:\n    Version:", "MPICH", MpiVersion::Family::kMpich},
};

Result<std::string> output_of(const std::vector<std::string>& argv) {
  constexpr double kSeconds = 30;
  DDL_ASSIGN(run, MeasuredRun::start({.argv = argv}));
  DDL_ASSIGN(cost, run.finish(Deadline::after_seconds(kSeconds)));
  static_cast<void>(cost);
  return run.output();
}

}  // namespace

Result<MpiVersion> parse_mpi_version(std::string_view text) {
  for (const Known& known : kKnown) {
    const std::size_t at = text.find(known.text);
    if (at == std::string_view::npos) continue;
    const std::string_view line = trim(split(text.substr(at + known.text.size()), '\n')[0]);
    return MpiVersion{known.family, std::string(known.name), std::string(split(line, ' ')[0])};
  }
  return fail(ErrorCode::kUnavailable, "it is neither Open MPI nor MPICH nor Intel MPI");
}

Result<MpiVersion> version_of_mpi(const std::string& launcher) {
  auto version = output_of({launcher, "--version"}).and_then(parse_mpi_version);
  if (!version) version.error() = Error(version.error()).during(launcher + " --version");
  return version;
}

Environment PeerMpi::environment() const {
  Environment all{{"LD_LIBRARY_PATH", folder + "/lib"}};
  if (version.family == MpiVersion::Family::kMpich) all["I_MPI_PIN"] = "off";
  return all;
}

std::vector<std::string> PeerMpi::tuned_words() const {
  if (version.family != MpiVersion::Family::kOpenMpi) return {};
  return {"--mca", "pml", "ob1"};
}

Environment PeerMpi::tuned_environment() const {
  if (version.family != MpiVersion::Family::kMpich) return {};
  return {{"I_MPI_FABRICS", "shm"},
          {"MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM", "release_gather"},
          {"MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM", "release_gather"}};
}

Result<PeerMpi> find_peer_mpi(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::string folder = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name.empty() || (equals != std::string::npos && folder.empty()))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("--mpi \"{}\" is neither a name nor NAME=FOLDER", text));
  if (folder.empty()) {
    const auto found = output_of({DDL_BENCH_FRAMEWORKS_SCRIPT, "--where", name});
    if (!found)
      return fail(
          ErrorCode::kNotFound,
          fmt::format("--mpi {}: there is no such environment; scripts/frameworks --list names those that "
                      "it can make, and --mpi {}=FOLDER names another folder",
                      name, name));
    folder = trim(*found);
  }
  folder = std::filesystem::absolute(folder).lexically_normal();
  const std::string launcher = folder + "/bin/mpiexec";
  if (::access(launcher.c_str(), X_OK) != 0)
    return fail(ErrorCode::kNotFound, fmt::format("--mpi {}: {} is not there", text, launcher));
  DDL_ASSIGN(version, version_of_mpi(launcher));
  return PeerMpi{name, folder, std::move(version)};
}

}  // namespace ddl::bench
