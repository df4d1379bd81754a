#include "launcher/mpi/mpi_flavor.h"

#include "base/text.h"

namespace ddl::launcher {

namespace {

std::string first_line(std::string_view text) { return std::string(trim(split(trim(text), '\n').front())); }

/// What stands behind a word, up to the end of its line.
std::string behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? "" : first_line(text.substr(at + word.size()));
}

}  // namespace

Result<MpiLauncher> mpi_launcher_of(std::string_view text) {
  if (const std::string version = behind(text, "(Open MPI)"); !version.empty()) {
    const auto major = parse_integer(version.substr(0, version.find('.')));
    if (!major) return fail(ErrorCode::kInvalidArgument, "Open MPI's version is not understood: " + version);
    return MpiLauncher{*major >= 5 ? MpiFlavor::kPrrte : MpiFlavor::kOpenMpi4, "Open MPI " + version};
  }
  if (const std::string version = behind(text, "(OpenRTE)"); !version.empty())  // mpiexec, orterun
    return MpiLauncher{MpiFlavor::kOpenMpi4, "Open MPI " + version};
  if (const std::string version = behind(text, "(PRRTE)"); !version.empty())
    return MpiLauncher{MpiFlavor::kPrrte, "PRRTE " + version};
  if (text.find("HYDRA build details") != std::string_view::npos)
    return MpiLauncher{MpiFlavor::kHydra, "MPICH's hydra " + behind(text, "Version:")};
  if (text.find("Intel(R) MPI Library") != std::string_view::npos)
    return MpiLauncher{MpiFlavor::kHydra, first_line(text)};
  return fail(ErrorCode::kInvalidArgument,
              "it is neither Open MPI's, PRRTE's nor hydra's: it says \"" + first_line(text) + "\"");
}

}  // namespace ddl::launcher
