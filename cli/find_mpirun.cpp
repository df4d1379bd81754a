#include "cli/find_mpirun.h"

#include <unistd.h>

#include <chrono>

#include "base/process.h"
#include "cli/command_output.h"
#include "launcher/agent/node_probe.h"

namespace ddl::cli {

namespace {

constexpr std::chrono::seconds kVersionPatience{8};

}  // namespace

Result<launcher::MpirunSite> find_mpirun(const std::string& name, const launcher::Environment& environment) {
  launcher::MpirunSite site;
  site.path = name;
  if (name.find('/') == std::string::npos) {
    const auto path = environment.find("PATH");
    const auto found = find_in_path(name, path != environment.end() ? path->second : "/usr/bin:/bin");
    if (!found) return fail(ErrorCode::kNotFound, "there is no " + name + " in PATH");
    site.path = *found;
  }
  const auto said = command_output({site.path, "--version"}, {}, kVersionPatience);
  if (!said) return fail(said.error());
  const auto kind = launcher::mpi_launcher_of(said->out + "\n" + said->err);
  if (!kind) return fail(Error(kind.error()).during(site.path));
  site.flavor = kind->flavor;
  site.name = kind->name;
  site.is_root = ::geteuid() == 0;
  site.hostname = launcher::hostname();
  return site;
}

}  // namespace ddl::cli
