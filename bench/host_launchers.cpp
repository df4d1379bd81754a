#include "bench/host_launchers.h"

#include <unistd.h>

#include "base/text.h"
#include "bench/launchers.h"

namespace ddl::bench {
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
    case HostLauncher::kSsh: words = {site.programs + "/ssh_floor"}; break;
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
  return {words, {}, {}};
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
