#include "launcher/mpi/mpi_query.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/command.h"
#include "base/command_output.h"
#include "base/text.h"
#include "launcher/node/node_probe.h"
#include "launcher/scheduler/slurm.h"

namespace ddl::launcher {

namespace {

constexpr std::chrono::seconds kVersionPatience{8};

}  // namespace

Result<MpirunSite> find_mpirun(const std::string& name, const Environment& environment) {
  MpirunSite site;
  site.path = name;
  if (name.find('/') == std::string::npos) {
    const auto path = environment.find("PATH");
    const auto found = find_in_path(name, path != environment.end() ? path->second : "/usr/bin:/bin");
    if (!found) return fail(ErrorCode::kNotFound, "there is no " + name + " in PATH");
    site.path = *found;
  }
  DDL_ASSIGN(output, command_output({site.path, "--version"}, {}, kVersionPatience));
  const auto kind = mpi_launcher_of(output.out + "\n" + output.err);
  if (!kind) return fail(Error(kind.error()).during(site.path));
  site.flavor = kind->flavor;
  site.name = kind->name;
  site.is_root = ::geteuid() == 0;
  site.hostname = hostname();
  return site;
}

std::string mismatch_with_environment(const std::string& command, const std::string& workdir,
                                      const MpirunSite& site, const Environment& environment) {
  namespace fs = std::filesystem;
  const auto found = command.find('/') == std::string::npos
                         ? find_in_path(command, value_of(environment, "PATH"))
                         : std::optional(command);
  if (!found) return "";  // a rank will say so
  const fs::path prefix = (fs::path(workdir) / *found).lexically_normal().parent_path().parent_path();
  const auto has = [&](const char* file) {
    std::error_code unknown;
    return fs::exists(prefix / file, unknown);
  };
  constexpr char kOpenMpi[] = "lib/libmpi.so.40", kMpich[] = "lib/libmpi.so.12";
  const bool has_open_mpi = has(kOpenMpi), has_mpich = has(kMpich);
  const bool serves_mpich = site.flavor == MpiFlavor::kHydra;
  // The system's folder has libraries of all that is installed.
  if (prefix == "/usr" || has_open_mpi == has_mpich || has_mpich == serves_mpich) return "";
  return fmt::format(
      "{} is of {}, but the environment of {} has {} ({}): its processes would not find each other; take "
      "its own mpirun with --mpirun {}, or omit --launcher mpirun",
      site.path, site.name, *found, has_mpich ? "MPICH or Intel MPI" : "Open MPI",
      (prefix / (has_mpich ? kMpich : kOpenMpi)).string(),
      has("bin/mpirun") ? (prefix / "bin/mpirun").string() : "FILE");
}

std::vector<std::string> parse_mpi_types(std::string_view text) {
  // One name on each line after a heading, with "srun: " before each where it goes to standard error; and then
  // "specific pmix plugin versions available: pmix_v3,pmix_v4".
  constexpr std::string_view kPrefix = "srun: ";
  constexpr std::string_view kVersions = "versions available: ";
  std::vector<std::string> types;
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with(kPrefix)) line.remove_prefix(kPrefix.size());
    const std::size_t versions = line.find(kVersions);
    if (versions != std::string_view::npos) line.remove_prefix(versions + kVersions.size());
    for (const std::string_view name : split(line, ',')) {
      const std::string_view type = trim(name);
      const bool is_name = !type.empty() && std::all_of(type.begin(), type.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      });
      if (is_name) types.emplace_back(type);
    }
  }
  return types;
}

Result<std::vector<std::string>> ask_mpi_types(const Environment& own) {
  constexpr std::chrono::seconds kPatience{10};
  DDL_ASSIGN(output,
             command_output({"srun", "--mpi=list"}, "", kPatience, srun_environment(own, SrunCall::kAgents)));
  auto types = parse_mpi_types(output.out + "\n" + output.err);
  if (types.empty()) return fail(ErrorCode::kUnavailable, "srun --mpi=list names no kind of MPI");
  return types;
}

Result<std::string> pmix_type_of(const std::vector<std::string>& types) {
  if (std::find(types.begin(), types.end(), "pmix") != types.end()) return std::string("pmix");
  return fail(ErrorCode::kUnavailable,
              "the srun here has no PMIx, by which ranks find each other; it has " + join(types, ", "));
}

}  // namespace ddl::launcher
