// Probes of what starts ranks: libddl and its bootstraps in a job of two ranks, ssh, srun, mpirun, and
// what writes and submits job scripts.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "base/cpu_set.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/options/this_process.h"
#include "contract/environment.h"
#include "contract/version.h"
#include "launcher/mpi/mpi_query.h"
#include "launcher/node/node_probe.h"
#include "launcher/pmix/pmix_advisory.h"
#include "launcher/scheduler/slurm.h"
#include "templates/cluster/cluster_query.h"
#include "templates/script/batch_job.h"
#include "templates/script/script_renderer.h"

namespace ddl::cli {

// libddl, tested with a program that uses it: alone, and as two ranks of a ddlrun job.

namespace {

namespace env = contract::env;

constexpr char kInstallAll[] = "install all of ddlrun: bin, lib and libexec";

/// Runs probe-rank with this launcher, and checks that its output starts with expected.
Finding run_probe_rank(std::vector<std::string> launcher, const std::string& expected,
                       const std::string& argument = {}) {
  launcher.push_back(libexec_path("probe-rank"));
  if (!argument.empty()) launcher.push_back(argument);
  // The user's timeline is not that of a probe.
  for (const char* name : {env::kTimeline, env::kHorovodTimeline}) ::unsetenv(name);
  const FirstLine line = first_line_of(launcher);
  if (line.text.empty()) return line.failure;
  if (!line.text.starts_with(expected))
    return fails("its program prints \"" + line.text + "\" instead of " + expected);
  const std::string version = "libddl " + std::string(contract::kVersion);
  const std::size_t over = line.text.find(" over ");
  if (!line.text.substr(0, over).ends_with(version))
    return fails("its libddl has another version: " + line.text + "; ddlrun needs " + version, kInstallAll);
  if (over == std::string::npos) return works(version, launcher::installed_libddl());
  return works(line.text.substr(over + 6), launcher::installed_libddl());
}

/// Two ranks, started by this ddlrun.
Finding run_probe_job(const std::string& expected) {
  return run_probe_rank({own_path(), "-np", "2", "--oversubscribe", "--launcher", "local", "--bind-to",
                         "none", "--quiet", "--no-tag-output"},
                        expected + " 2 1 ");
}

/// Two ranks add by the MPI of this name for DDL_MPI; nullptr: by the one that a program without MPI gets.
Finding sum_by_mpi(const char* mpi) {
  ::setenv(env::kCpuOperations, "mpi", 1);
  ::unsetenv(env::kMpi);
  if (mpi != nullptr) ::setenv(env::kMpi, mpi, 1);
  Finding found = run_probe_job("pmix mpi");
  if (found.works) {
    found.detail = "2 ranks on this host summed with it, by --cpu-operations mpi";
  } else {
    found.remedy = "load your MPI, or activate the Python environment that has it, before you start ddlrun";
  }
  return found;
}

void unset_launcher_variables() {
  for (const char* name : {env::kPmixNamespace, env::kPmixRank, env::kPmiFd, env::kPmiRank, env::kPmiSize})
    ::unsetenv(name);
  ::setenv(env::kAllowSingleton, "1", 1);
}

Finding ask_version(const std::string& name, const std::string& option, const std::string& remedy) {
  const CommandPath command = command_in_path(name, remedy);
  if (command.path.empty()) return command.missing;
  const FirstLine line = first_line_of({command.path, option});
  return line.text.empty() ? line.failure : works(line.text, command.path);
}

constexpr char kSlurmsCommands[] =
    "run it where jobs are submitted, or install Slurm's commands (Debian: slurm-client)";

constexpr char kNoCluster[] = "run it where Slurm is set up: SLURM_CONF, or /etc/slurm/slurm.conf";

}  // namespace

Finding probe_libddl() { return probe_singleton(); }

Finding probe_singleton() {
  unset_launcher_variables();
  return run_probe_rank({}, "singleton ddl 1 0 ");
}

Finding probe_gpu_operations(const std::string& vendor) {
  unset_launcher_variables();
  ::setenv(env::kGpuOperations, "nccl", 1);
  return run_probe_rank({}, "singleton ddl 1 0 ", vendor);
}

Finding probe_pmix_bootstrap() { return run_probe_job("pmix ddl"); }

Finding probe_pmi_bootstrap() {
  ::setenv(env::kModuleDirectory, "/nonexistent", 1);
  return run_probe_job("pmi ddl");
}

Finding probe_shared_memory() {
  Finding found = run_probe_job("pmix ddl");
  if (found.works) found.detail = "2 ranks on this host summed with it";
  return found;
}

Finding probe_mpi_operations() { return sum_by_mpi(nullptr); }
Finding probe_openmpi_module() { return sum_by_mpi("openmpi"); }
Finding probe_abi_module() { return sum_by_mpi("abi"); }
Finding probe_mpich_module() { return sum_by_mpi("mpich"); }

Finding probe_tcp() {
  std::vector<std::string> names;
  for (const auto& address : launcher::node_addresses())
    names.push_back(address.interface + " " + address.address);
  if (names.empty())
    return fails("no network interface but the loopback is up", "bring one up that other hosts reach");
  return works({}, {}, "this host has " + join(names, ", "));
}

// The PMIx and PMI-1 servers of the agents, tested by ranks that connect to them.

Finding probe_pmix_server() {
  const launcher::PmixLibrary library = launcher::linked_pmix();
  const std::string package = launcher::pmix_package_version(library).value_or("");
  const bool as_root = ::geteuid() == 0;
  if (as_root) {
    if (auto refusal = launcher::pmix_refusal(library.version_text, package))
      return fails(*std::move(refusal));
  }
  Finding asked = probe_pmix_bootstrap();
  if (!asked.works) return asked;
  return works(launcher::pmix_sentence(library.version_text, package, as_root), library.path);
}

Finding probe_pmi_server() {
  Finding found = probe_pmi_bootstrap();
  if (found.works) found = works("PMI-1", own_path(), "for programs of MPICH");
  return found;
}

// Programs that start agents and ranks: whether they run, and their versions.

Finding probe_this_machine() {
  Finding found = probe_pmix_bootstrap();
  if (found.works) found = works({}, own_path(), counted(CpuSet::allowed().count(), "CPU"));
  return found;
}

Finding probe_ssh() { return ask_version("ssh", "-V", "install it (Debian: openssh-client)"); }

Finding probe_srun_agents() {
  Finding found = ask_version("srun", "--version", kSlurmsCommands);
  if (found.works) {
    const auto job = launcher::slurm().find_job(process_environment());
    found.detail = job && *job ? "inside Slurm job " + (*job)->id
                               : std::string("for Slurm jobs; ddlrun is not in one here");
  } else if (found.remedy.empty()) {
    found.remedy = kNoCluster;
  }
  return found;
}

Finding probe_srun_ranks() {
  Finding found = probe_srun_agents();
  if (!found.works) return found;
  const auto types = launcher::ask_mpi_types(process_environment());
  if (!types) return fails(types.error().message(), "run srun --mpi=list here to see why");
  found.detail = "its MPI types: " + join(*types, ", ");
  const bool has_one = std::any_of(types->begin(), types->end(), [](const std::string& type) {
    return type.starts_with("pmix") || type == "pmi2";
  });
  if (has_one) return found;
  return fails(found.detail + "; libddl needs pmix or pmi2", "ask the site's staff for Slurm's PMIx plugin");
}

Finding probe_mpirun() {
  const CommandPath command = command_in_path("mpirun", "install an MPI, or load its module");
  if (command.path.empty()) return command.missing;
  const auto site = launcher::find_mpirun(command.path, process_environment());
  if (!site) return fails(site.error().message(), "name another with --mpirun");
  const std::string mismatch = launcher::mismatch_with_environment(
      "python3", current_directory().value_or("/"), *site, process_environment());
  return works(site->name, command.path, mismatch.empty() ? "for --launcher mpirun" : mismatch);
}

// Job scripts: writing, checking and submitting them.

Finding probe_script_templates() {
  templates::ScriptRequest request;
  request.num_ranks = 2;
  request.command = {"./train"};
  request.ddlrun = "ddlrun";
  const auto job = templates::make_batch_job(request, nullptr);
  if (!job) return fails(job.error().message());
  const auto found =
      templates::find_templates("", config_folders(process_environment(), "slurm"), read_user_file);
  if (!found)
    return fails(found.error().message(), "correct it: " + document("reference/script-templates.md"));
  const auto text = templates::render_script(*found, request, *job, nullptr, {});
  if (!text) return fails(text.error().message(), "correct it: " + document("reference/script-templates.md"));
  if (!text->starts_with("#!/bin/bash")) return fails("the script does not begin with #!/bin/bash");
  return works({}, {}, "ddlrun --slurm writes a script of " + counted(split(*text, '\n').size(), "line"));
}

Finding probe_slurm_probe() {
  const auto facts = templates::ask_cluster(libexec_path("slurm-probe"), kCommandTimeout);
  if (!facts) return fails(facts.error().message(), "run it where Slurm is set up");
  return works({}, libexec_path("slurm-probe"),
               counted(facts->partitions.size(), "partition") + " of " + facts->name);
}

Finding probe_sbatch() {
  const CommandPath command =
      command_in_path("sbatch", "ddlrun writes scripts without it; submit them on a host that has sbatch");
  if (command.path.empty()) return command.missing;
  const FirstLine line = first_line_of({command.path, "--version"});
  if (!line.text.empty()) return works(line.text, command.path, "for --submit and --test-only");
  return fails(line.failure.detail, "run it where Slurm is set up: SLURM_CONF, or /etc/slurm/slurm.conf");
}

}  // namespace ddl::cli
