// libddl, by programs that use it: alone, and two ranks of a job of ddlrun's.
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/check_build/probe_tools.h"
#include "cli/this_process.h"
#include "contract/environment.h"
#include "contract/version.h"
#include "launcher/agent/node_addresses.h"
#include "launcher/agent/node_resources.h"

namespace ddl::cli {

namespace {

namespace env = contract::env;

constexpr char kInstallWhole[] = "install the whole of ddlrun: bin, lib and libexec";

/// What probe-rank says that was started so, if it is what it should say.
Finding program_says(std::vector<std::string> launcher, const std::string& wanted) {
  launcher.push_back(libexec_path("probe-rank"));
  const FirstLine said = first_line_of(launcher);
  if (said.text.empty()) return said.failure;
  if (!said.text.starts_with(wanted)) return fails("its program says \"" + said.text + "\", not " + wanted);
  const std::string version = "libddl " + std::string(contract::kVersion);
  const std::size_t over = said.text.find(" over ");
  if (!said.text.substr(0, over).ends_with(version))
    return fails("its libddl is another one: " + said.text + ", and this is " + version, kInstallWhole);
  if (over == std::string::npos) return works(version, launcher::installed_libddl());
  return works(said.text.substr(over + 6), launcher::installed_libddl());
}

/// Two ranks, started by this ddlrun.
Finding job_says(const std::string& wanted) {
  return program_says({own_path(), "-np", "2", "--oversubscribe", "--launcher", "local", "--bind-to", "none",
                       "--quiet", "--no-tag-output"},
                      wanted + " 2 1 ");
}

void forget_launchers() {
  for (const char* name : {env::kPmixNamespace, env::kPmixRank, env::kPmiFd, env::kPmiRank, env::kPmiSize})
    ::unsetenv(name);
  ::setenv(env::kAllowSingleton, "1", 1);
}

}  // namespace

Finding look_at_libddl() { return look_at_singleton(); }

Finding look_at_singleton() {
  forget_launchers();
  return program_says({}, "singleton ddl 1 0 ");
}

Finding look_at_pmix_bootstrap() { return job_says("pmix ddl"); }

Finding look_at_pmi_bootstrap() {
  ::setenv(env::kModuleDirectory, "/nonexistent", 1);
  return job_says("pmi ddl");
}

Finding look_at_shared_memory() {
  Finding found = job_says("pmix ddl");
  if (found.works) found.detail = "2 ranks of this host have added";
  return found;
}

Finding look_at_mpi_operations() {
  ::setenv(env::kCpuOperations, "mpi", 1);
  // A word in the environment would decide which MPI, and this looks whether there is one.
  ::unsetenv(env::kMpi);
  Finding found = job_says("pmix mpi");
  if (found.works) {
    found.detail = "2 ranks of this host have added by it, with --cpu-operations mpi";
  } else {
    found.remedy = "build where the mpicc of your MPI is in PATH, and load that MPI before the ranks start";
  }
  return found;
}

Finding look_at_tcp() {
  std::vector<std::string> names;
  for (const auto& address : launcher::node_addresses())
    names.push_back(address.interface + " " + address.address);
  if (names.empty())
    return fails("no network interface but the loopback is up", "bring one up that other hosts reach");
  return works({}, {}, "this host has " + join(names, ", "));
}

}  // namespace ddl::cli
