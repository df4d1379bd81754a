// What starts agents and ranks, asked for its version.
#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/check_build/probe_tools.h"
#include "cli/find_mpirun.h"
#include "cli/mpi_types.h"
#include "cli/this_process.h"
#include "launcher/job/slurm/slurm_job.h"

namespace ddl::cli {

namespace {

Finding ask_version(const std::string& name, const std::string& option, const std::string& remedy) {
  const Command command = command_in_path(name, remedy);
  if (command.path.empty()) return command.missing;
  const FirstLine said = first_line_of({command.path, option});
  return said.text.empty() ? said.failure : works(said.text, command.path);
}

constexpr char kSlurmsCommands[] = "Slurm's commands are where its jobs are submitted (Debian: slurm-client)";

constexpr char kNoCluster[] = "run it where Slurm is set up: SLURM_CONF, or /etc/slurm/slurm.conf";

}  // namespace

Finding look_at_own_machine() {
  Finding found = look_at_pmix_bootstrap();
  if (found.works) found = works({}, own_path(), counted(allowed_cpus(), "CPU"));
  return found;
}

Finding look_at_ssh() { return ask_version("ssh", "-V", "install it (Debian: openssh-client)"); }

Finding look_at_srun_agents() {
  Finding found = ask_version("srun", "--version", kSlurmsCommands);
  if (found.works) {
    const auto job = launcher::slurm_job(process_environment());
    found.detail = job && *job ? "inside Slurm job " + (*job)->id
                               : std::string("for jobs of Slurm; ddlrun is in none here");
  } else if (found.remedy.empty()) {
    found.remedy = kNoCluster;
  }
  return found;
}

Finding look_at_srun_ranks() {
  Finding found = look_at_srun_agents();
  if (!found.works) return found;
  const auto types = ask_mpi_types();
  if (!types) return fails(types.error().message(), "look whether srun --mpi=list works here");
  found.detail = "its kinds of MPI: " + join(*types, ", ");
  const bool has_one = std::any_of(types->begin(), types->end(), [](const std::string& type) {
    return type.starts_with("pmix") || type == "pmi2";
  });
  if (has_one) return found;
  return fails(found.detail + "; libddl needs pmix or pmi2", "ask the site's staff for Slurm's PMIx plugin");
}

Finding look_at_mpirun() {
  const Command command = command_in_path("mpirun", "install an MPI, or load its module");
  if (command.path.empty()) return command.missing;
  const auto site = find_mpirun(command.path, process_environment());
  if (!site) return fails(site.error().message(), "name another with --mpirun");
  return works(site->name, command.path, "for --launcher mpirun");
}

}  // namespace ddl::cli
