// How one capability is probed: each probe runs in a process of its own, where it may crash or hang.
// Here is also what several probes need.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "cli/check_build/capability.h"

namespace ddl::cli {

// How one box of --check-build is looked into.

struct Probe {
  const char* heading;
  const char* name;
  const char* key;
  const char*
      not_built;      ///< why this build does not have it, as a sentence without its end; nullptr: it does
  Finding (*look)();  ///< in a process of its own, where it may load, start and break what it likes
};

/// Looks into all of them at once, each in a child: who crashes, hangs or leaves has a box that says so. Returns when all
/// have answered or patience is over, and nothing that they have started is left. For a process with
/// one thread.
std::vector<Capability> look_into(std::span<const Probe> probes, std::chrono::milliseconds patience);

/// Every box, in the order in which they are shown.
std::span<const Probe> probe_list();

// The looks, by what they look at; what each tries is beside its code.
Finding look_at_libddl();
Finding look_at_pmix_server();
Finding look_at_pmi_server();
Finding look_at_pmix_bootstrap();
Finding look_at_pmi_bootstrap();
Finding look_at_singleton();
Finding look_at_shared_memory();
Finding look_at_tcp();
Finding look_at_nccl();
Finding look_at_rccl();
Finding look_at_cuda();
Finding look_at_hip();
Finding look_at_mpi_operations();
Finding look_at_gloo();
Finding look_at_own_machine();
Finding look_at_ssh();
Finding look_at_srun_agents();
Finding look_at_srun_ranks();
Finding look_at_mpirun();
Finding look_at_open_mpi();
Finding look_at_mpich();
Finding look_at_torch();
Finding look_at_tensorflow();
Finding look_at_hwloc();
Finding look_at_hwloc_plugins();
Finding look_at_hwloc_files();
Finding look_at_nvml();
Finding look_at_rocm_smi();
Finding look_at_site_models();
Finding look_at_script_templates();
Finding look_at_slurm_probe();
Finding look_at_sbatch();
Finding look_at_sealed_memory();
Finding look_at_pidfd();
Finding look_at_memory_policy();
Finding look_at_cma();
Finding look_at_cgroups();
Finding look_at_io_uring();
Finding look_at_limits();

// What looks have in common.

/// For files of --check-build.
Result<TemporaryFolder> make_scratch_folder();

Finding works(std::string version, std::string file, std::string detail = {});
Finding fails(std::string detail, std::string remedy = {});

/// For a command that a look runs: within that of --check-build as a whole, so that the box says who was slow.
inline constexpr std::chrono::seconds kCommandPatience{17};

/// "in PATH", or a finding that says it is not, with what to do.
struct FoundCommand {
  std::string path;  ///< "": it is not there
  Finding missing;
};
FoundCommand command_in_path(const std::string& name, const std::string& remedy);

/// The first line that a command prints, on either stream, with exit code 0; else a finding that says what it did instead.
struct FirstLine {
  std::string text;  ///< "": it failed
  Finding failure;
};
FirstLine first_line_of(const std::vector<std::string>& argv);

}  // namespace ddl::cli
