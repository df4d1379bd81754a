#include "bench/launchers.h"

#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::bench {
namespace {

std::string program_path(const RankProgram& program, const Site& site) {
  const std::string& name = program.argv[0];
  return name.find('/') == std::string::npos ? site.programs + "/" + name : name;
}

std::vector<std::string> launcher_words(Launcher launcher, const RankProgram& program, const Site& site,
                                        const Settings& settings) {
  const std::string ranks = std::to_string(program.ranks);
  const bool is_oversubscribed = program.ranks > settings.ranks_with_cpus();
  // Hydra, MPICH's and Intel's launcher, pins none, lets root run it, and starts any number of ranks.
  const bool is_hydra = program.mpi != nullptr && program.mpi->version.family == MpiVersion::Family::kMpich;
  std::vector<std::string> words;
  switch (launcher) {
    case Launcher::kFloor: return {site.programs + "/launch_floor", "spawn", ranks};
    case Launcher::kDdlrun: words = {site.ddlrun, "-np", ranks}; break;
    case Launcher::kMpirun:
      words = {program.mpi != nullptr ? program.mpi->launcher() : site.mpirun, "-n", ranks};
      if (is_hydra) break;
      words.insert(words.end(), {"--bind-to", "none"});
      if (site.is_root) words.push_back("--allow-run-as-root");
      break;
  }
  if (is_oversubscribed && !is_hydra) words.push_back("--oversubscribe");
  words.insert(words.end(), program.launcher_options.begin(), program.launcher_options.end());
  return words;
}

bool is_executable(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace

Command launch(Launcher launcher, const RankProgram& program, const Site& site, const Settings& settings) {
  Command command;
  command.argv = launcher_words(launcher, program, site, settings);
  command.argv.push_back(program_path(program, site));
  command.argv.insert(command.argv.end(), program.argv.begin() + 1, program.argv.end());
  command.variables = program.environment;
  command.cpus = CpuSet::of(settings.cpus);
  return command;
}

std::optional<std::string> why_absent(Launcher launcher, const RankProgram& program, const Site& site) {
  if (launcher == Launcher::kMpirun && program.mpi == nullptr && site.mpirun.empty())
    return "mpirun is not in PATH";
  if (launcher == Launcher::kDdlrun && !is_executable(site.ddlrun))
    return site.ddlrun + " has not been built";
  const std::string path = program_path(program, site);
  if (is_executable(path)) return std::nullopt;
  return why_not_built(path, site);
}

std::string why_not_built(const std::string& path, const Site& site) {
  if (path.ends_with("_mpi_12")) return path + " has not been built: CMake found no MPICH";
  if (path.ends_with("_mpi") && !site.mpi_absent.empty()) return site.mpi_absent;
  if (path.ends_with("_gloo") && !site.gloo_absent.empty()) return site.gloo_absent;
  if (path.ends_with("_torch") && !site.torch_absent.empty()) return site.torch_absent;
  return path + " has not been built";
}

namespace {

std::string path_of(const std::string& program, const Site& site) {
  return program.find('/') == std::string::npos ? site.programs + "/" + program : program;
}

std::string host_list(const HostJob& job) {
  std::vector<std::string> hosts = job.hosts;
  if (job.launcher != HostLauncher::kSsh) {
    for (std::string& host : hosts) host += ":" + std::to_string(job.ranks_per_host);
  }
  return join(hosts, ",");
}

}  // namespace

Command launch_on_hosts(const HostJob& job, const Site& site) {
  std::vector<std::string> words;
  switch (job.launcher) {
    case HostLauncher::kSsh: words = {site.programs + "/launch_floor", "ssh"}; break;
    case HostLauncher::kDdlrun: words = {site.ddlrun, "-H"}; break;
    case HostLauncher::kMpirun:
      words = {site.mpirun, "--bind-to", "none", "--mca", "plm_rsh_agent", "ssh", "-H"};
      if (site.is_root) words.insert(words.begin() + 1, "--allow-run-as-root");
      break;
  }
  words.push_back(host_list(job));
  words.insert(words.end(), job.options.begin(), job.options.end());
  words.push_back(path_of(job.program, site));
  words.insert(words.end(), job.arguments.begin(), job.arguments.end());
  return {.argv = words};
}

std::optional<std::string> why_absent(const HostJob& job, const Site& site) {
  if (job.launcher == HostLauncher::kMpirun && site.mpirun.empty()) return "mpirun is not in PATH";
  for (const std::string& path : {launch_on_hosts(job, site).argv[0], path_of(job.program, site)}) {
    if (::access(path.c_str(), X_OK) == 0) continue;
    return why_not_built(path, site);
  }
  return std::nullopt;
}

}  // namespace ddl::bench
