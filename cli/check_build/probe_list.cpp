// Every probe, in the order in which --check-build shows them. A source of its own: CMake tells it how
// many MPI modules are built.
#include <array>

#include "cli/check_build/probe.h"

namespace ddl::cli {

namespace {

constexpr char kFrameworks[] = "Frameworks";
constexpr char kControllers[] = "Controllers";
constexpr char kOperations[] = "Tensor Operations";
constexpr char kLaunchers[] = "Launchers";
constexpr char kBootstraps[] = "Bootstraps";
constexpr char kTransports[] = "Transports";
constexpr char kPrograms[] = "Programs";
constexpr char kTopologies[] = "Topology Sources";
constexpr char kTemplates[] = "Templates";
constexpr char kKernel[] = "Kernel Features";

constexpr char kNoPython[] = "this version has no Python package";
constexpr const char* kNoMpiModule =
    DDL_MPI_MODULES > 0 ? nullptr : "no MPI's compiler was there when this was built";
constexpr char kNoGpuMemory[] = "this version takes no GPU memory";

}  // namespace

std::span<const Probe> probe_list() {
  static constexpr std::array kProbes = {
      // horovodrun's three headings, in its words and in its order.
      Probe{kFrameworks, "C and C++", "libddl", nullptr, look_at_libddl},
      Probe{kFrameworks, "TensorFlow", "tensorflow-package", kNoPython, look_at_tensorflow},
      Probe{kFrameworks, "PyTorch", "pytorch-package", kNoPython, look_at_torch},
      Probe{kControllers, "PMIx", "pmix-server", nullptr, look_at_pmix_server},
      Probe{kControllers, "PMI-1", "pmi-server", nullptr, look_at_pmi_server},
      Probe{kControllers, "MPI", "mpi-controller", nullptr, look_at_mpirun},
      Probe{kOperations, "Host", "host", nullptr, look_at_shared_memory},
      Probe{kOperations, "NCCL", "nccl", kNoGpuMemory, look_at_nccl},
      Probe{kOperations, "RCCL", "rccl", kNoGpuMemory, look_at_rccl},
      Probe{kOperations, "MPI", "mpi", kNoMpiModule,
            DDL_MPI_MODULES > 0 ? look_at_mpi_operations : look_at_open_mpi},
      Probe{kOperations, "Gloo", "gloo", "this version has no Gloo backend; Host takes its place",
            look_at_gloo},

      Probe{kLaunchers, "this machine", "local", nullptr, look_at_own_machine},
      Probe{kLaunchers, "ssh", "ssh", nullptr, look_at_ssh},
      Probe{kLaunchers, "Slurm, agents by srun", "slurm", nullptr, look_at_srun_agents},
      Probe{kLaunchers, "Slurm, ranks by srun", "srun", nullptr, look_at_srun_ranks},
      Probe{kLaunchers, "mpirun", "mpirun", nullptr, look_at_mpirun},
      Probe{kBootstraps, "pmix", "pmix", nullptr, look_at_pmix_bootstrap},
      Probe{kBootstraps, "pmi", "pmi", nullptr, look_at_pmi_bootstrap},
      Probe{kBootstraps, "singleton", "singleton", nullptr, look_at_singleton},
      Probe{kTransports, "shared memory", "shared-memory", nullptr, look_at_shared_memory},
      Probe{kTransports, "TCP", "tcp", nullptr, look_at_tcp},
      Probe{kTransports, "CUDA", "cuda", kNoGpuMemory, look_at_cuda},
      Probe{kTransports, "HIP", "hip", kNoGpuMemory, look_at_hip},
      Probe{kPrograms, "Open MPI", "open-mpi", nullptr, look_at_open_mpi},
      Probe{kPrograms, "MPICH", "mpich", nullptr, look_at_mpich},
      Probe{kPrograms, "torch.distributed", "torch", nullptr, look_at_torch},
      Probe{kTopologies, "this machine", "hwloc", nullptr, look_at_hwloc},
      Probe{kTopologies, "hwloc's plugins", "hwloc-plugins", nullptr, look_at_hwloc_plugins},
      Probe{kTopologies, "files and short forms", "hwloc-files", nullptr, look_at_hwloc_files},
      Probe{kTopologies, "profiles of sites", "sites", nullptr, look_at_site_models},
      Probe{kTopologies, "NVML", "nvml", nullptr, look_at_nvml},
      Probe{kTopologies, "ROCm SMI", "rocm-smi", nullptr, look_at_rocm_smi},
      Probe{kTemplates, "job scripts", "slurm-templates", nullptr, look_at_script_templates},
      Probe{kTemplates, "sbatch", "sbatch", nullptr, look_at_sbatch},
      Probe{kTemplates, "slurm-probe", "slurm-probe", nullptr, look_at_slurm_probe},
      Probe{kKernel, "sealed memory", "memfd", nullptr, look_at_sealed_memory},
      Probe{kKernel, "pidfd", "pidfd", nullptr, look_at_pidfd},
      Probe{kKernel, "memory policy", "memory-policy", nullptr, look_at_memory_policy},
      Probe{kKernel, "copies between processes", "cma", nullptr, look_at_cma},
      Probe{kKernel, "delegated cgroup", "cgroup", nullptr, look_at_cgroups},
      Probe{kKernel, "io_uring", "io-uring", nullptr, look_at_io_uring},
      Probe{kKernel, "limits", "limits", nullptr, look_at_limits},
  };
  return kProbes;
}

}  // namespace ddl::cli
