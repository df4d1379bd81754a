// How one capability is probed: each probe runs in a process of its own, where it may crash or hang. Also functions
// that several probes use.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "cli/check_build/capability.h"

namespace ddl::cli {

/// A program of libexec that probes run. A build without it is not complete.
struct Helper {
  const char* name;
  const char* remedy;  ///< where it is missing
};

struct Probe {
  const char* heading;
  const char* name;
  const char* key;
  /// Why this build does not have it, as a sentence without its full stop; nullptr: it does.
  const char* not_built;
  Finding (*run)();  ///< runs in a process of its own, where it may load, start and break anything
  const Helper* helper = nullptr;  ///< nullptr: it needs none
};

/// Runs all probes at once, each in a child. If a probe crashes, hangs or exits, its finding states this. Returns
/// when all have answered or the timeout is over; all processes that they have started are ended then. For a process
/// with one thread. Error: a child cannot be started, with the system's errno.
Result<std::vector<Capability>> run_probes(std::span<const Probe> probes, std::chrono::milliseconds timeout);

/// Every probe, in the order in which --check-build prints them.
std::span<const Probe> probe_list();

// The probes, by file: launcher_probes.cpp, library_probes.cpp, machine_probes.cpp.
Finding probe_libddl();
Finding probe_pmix_server();
Finding probe_pmi_server();
Finding probe_pmix_bootstrap();
Finding probe_pmi_bootstrap();
Finding probe_singleton();
Finding probe_shared_memory();
Finding probe_tcp();
Finding probe_nccl();
Finding probe_rccl();
Finding probe_cuda();
Finding probe_hip();
Finding probe_mpi_operations();
Finding probe_openmpi_module();
Finding probe_abi_module();
Finding probe_mpich_module();
Finding probe_gloo();
Finding probe_this_machine();
Finding probe_ssh();
Finding probe_srun_agents();
Finding probe_srun_ranks();
Finding probe_mpirun();
Finding probe_open_mpi();
Finding probe_mpich();
Finding probe_python();
Finding probe_ddl_torch();
Finding probe_torch();
Finding probe_tensorflow();
Finding probe_hwloc();
Finding probe_hwloc_plugins();
Finding probe_hwloc_files();
Finding probe_nvml();
Finding probe_rocm_smi();
Finding probe_site_models();
Finding probe_script_templates();
Finding probe_slurm_probe();
Finding probe_sbatch();
Finding probe_sealed_memory();
Finding probe_pidfd();
Finding probe_memory_policy();
Finding probe_cma();
Finding probe_cgroups();
Finding probe_io_uring();
Finding probe_limits();

// Functions for probes.

/// A directory for the files of --check-build, below $TMPDIR.
Result<TemporaryFolder> make_scratch_folder();

/// A rank alone adds in memory of the first GPU, by the vendor's collectives. vendor: "cuda" or "hip".
Finding probe_gpu_operations(const std::string& vendor);

Finding works(std::string version, std::string file, std::string detail = {});
Finding fails(std::string detail, std::string remedy = {});

/// For a command that a probe runs. Shorter than the timeout of --check-build, so that the finding names the slow
/// command.
inline constexpr std::chrono::seconds kCommandTimeout{17};

/// The path of a command, or a finding which states that it is not in PATH, with the remedy.
struct CommandPath {
  std::string path;  ///< "": it is not in PATH
  Finding missing;
};
CommandPath command_in_path(const std::string& name, const std::string& remedy);

/// The first line that a command prints on either stream, if it exits with 0; else a finding that describes the
/// failure.
struct FirstLine {
  std::string text;  ///< "": it failed
  Finding failure;
};
FirstLine first_line_of(const std::vector<std::string>& argv);

}  // namespace ddl::cli
