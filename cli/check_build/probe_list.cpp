// Every probe, in the order in which --check-build prints them. CMake defines DDL_MPIS, the names of the MPIs whose
// compiler wrappers it has found.
#include <array>
#include <string_view>

#include "cli/check_build/probe.h"

namespace ddl::cli {

namespace {

constexpr char kFrameworks[] = "Frameworks";
constexpr char kControllers[] = "Controllers";
constexpr char kOperations[] = "Tensor Operations";
constexpr char kLaunchers[] = "Launchers";
constexpr char kBootstraps[] = "Bootstraps";
constexpr char kTransports[] = "Transports";
constexpr char kMpiModules[] = "MPI Modules";
constexpr char kPrograms[] = "Programs";
constexpr char kTopologies[] = "Topology Sources";
constexpr char kTemplates[] = "Templates";
constexpr char kKernel[] = "Kernel Features";

constexpr Helper kProbeRank{
    "probe-rank",
    "build all of it (cmake --build BUILD --target product), or install bin, lib and libexec together"};
constexpr Helper kSlurmProbe{
    "slurm-probe", "build ddlrun where libslurm is (Debian: libslurm-dev); ddlrun asks scontrol instead"};

/// The module for an MPI whose compiler wrapper CMake looks for; without it, whether this host has the library.
constexpr Probe mpi_module(const char* name, const char* key, Finding (*module)(), Finding (*library)()) {
  if (std::string_view(DDL_MPIS).find(name) != std::string_view::npos)
    return {kMpiModules, name, key, nullptr, module, &kProbeRank};
  return {kMpiModules, name, key, "no mpicc of such an MPI was found when ddlrun was built", library};
}

}  // namespace

std::span<const Probe> probe_list() {
  static constexpr std::array kProbes = {
      // horovodrun's three headings, with its words and in its order.
      Probe{kFrameworks, "C and C++", "libddl", nullptr, probe_libddl, &kProbeRank},
      Probe{kFrameworks, "Python", "python-package", nullptr, probe_python},
      Probe{kFrameworks, "TensorFlow", "tensorflow-package", "libddl has no module for TensorFlow",
            probe_tensorflow},
      Probe{kFrameworks, "PyTorch", "pytorch-package", nullptr, probe_ddl_torch},
      Probe{kControllers, "PMIx", "pmix-server", nullptr, probe_pmix_server, &kProbeRank},
      Probe{kControllers, "PMI-1", "pmi-server", nullptr, probe_pmi_server, &kProbeRank},
      Probe{kControllers, "MPI", "mpi-controller", nullptr, probe_mpirun},
      Probe{kOperations, "Host", "host", nullptr, probe_shared_memory, &kProbeRank},
      Probe{kOperations, "NCCL", "nccl", nullptr, probe_nccl},
      Probe{kOperations, "RCCL", "rccl", nullptr, probe_rccl},
      Probe{kOperations, "MPI", "mpi", nullptr, probe_mpi_operations, &kProbeRank},
      Probe{kOperations, "Gloo", "gloo", "this version has no Gloo backend; Host replaces it", probe_gloo},

      Probe{kLaunchers, "this machine", "local", nullptr, probe_this_machine, &kProbeRank},
      Probe{kLaunchers, "ssh", "ssh", nullptr, probe_ssh},
      Probe{kLaunchers, "Slurm, agents by srun", "slurm", nullptr, probe_srun_agents},
      Probe{kLaunchers, "Slurm, ranks by srun", "srun", nullptr, probe_srun_ranks},
      Probe{kLaunchers, "mpirun", "mpirun", nullptr, probe_mpirun},
      Probe{kBootstraps, "pmix", "pmix", nullptr, probe_pmix_bootstrap, &kProbeRank},
      Probe{kBootstraps, "pmi", "pmi", nullptr, probe_pmi_bootstrap, &kProbeRank},
      Probe{kBootstraps, "singleton", "singleton", nullptr, probe_singleton, &kProbeRank},
      Probe{kTransports, "shared memory", "shared-memory", nullptr, probe_shared_memory, &kProbeRank},
      Probe{kTransports, "TCP", "tcp", nullptr, probe_tcp},
      Probe{kTransports, "CUDA", "cuda", nullptr, probe_cuda},
      Probe{kTransports, "HIP", "hip", nullptr, probe_hip},
      mpi_module("openmpi", "mpi-openmpi", probe_openmpi_module, probe_open_mpi),
      Probe{kMpiModules, "abi", "mpi-abi", nullptr, probe_abi_module, &kProbeRank},
      mpi_module("mpich", "mpi-mpich", probe_mpich_module, probe_mpich),
      Probe{kPrograms, "Open MPI", "open-mpi", nullptr, probe_open_mpi},
      Probe{kPrograms, "MPICH", "mpich", nullptr, probe_mpich},
      Probe{kPrograms, "torch.distributed", "torch", nullptr, probe_torch},
      Probe{kTopologies, "this machine", "hwloc", nullptr, probe_hwloc},
      Probe{kTopologies, "hwloc's plugins", "hwloc-plugins", nullptr, probe_hwloc_plugins},
      Probe{kTopologies, "files and short forms", "hwloc-files", nullptr, probe_hwloc_files},
      Probe{kTopologies, "profiles of sites", "sites", nullptr, probe_site_models},
      Probe{kTopologies, "NVML", "nvml", nullptr, probe_nvml},
      Probe{kTopologies, "ROCm SMI", "rocm-smi", nullptr, probe_rocm_smi},
      Probe{kTemplates, "job scripts", "slurm-templates", nullptr, probe_script_templates},
      Probe{kTemplates, "sbatch", "sbatch", nullptr, probe_sbatch},
      Probe{kTemplates, "slurm-probe", "slurm-probe", nullptr, probe_slurm_probe, &kSlurmProbe},
      Probe{kKernel, "sealed memory", "memfd", nullptr, probe_sealed_memory},
      Probe{kKernel, "pidfd", "pidfd", nullptr, probe_pidfd},
      Probe{kKernel, "memory policy", "memory-policy", nullptr, probe_memory_policy},
      Probe{kKernel, "copies between processes", "cma", nullptr, probe_cma},
      Probe{kKernel, "delegated cgroup", "cgroup", nullptr, probe_cgroups},
      Probe{kKernel, "io_uring", "io-uring", nullptr, probe_io_uring},
      Probe{kKernel, "limits", "limits", nullptr, probe_limits},
  };
  return kProbes;
}

}  // namespace ddl::cli
