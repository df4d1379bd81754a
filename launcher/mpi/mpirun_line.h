// The mpirun that starts a job's ranks, for each kind of MPI.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/environment.h"
#include "launcher/job/job_spec.h"
#include "launcher/mpi/mpi_flavor.h"

namespace ddl::launcher {

/// What only mpirun is told.
struct MpiWishes {
  std::vector<std::string> mpi_args;      ///< passed on as they are
  std::vector<std::string> binding_args;  ///< instead of ddlrun's own binding
  bool tcp_only = false;                  ///< messages go over TCP and shared memory alone
};

/// Where it is started.
struct MpirunSite {
  std::string path = "mpirun";
  std::string name;  ///< "Open MPI 4.1.4", for a person
  MpiFlavor flavor = MpiFlavor::kOpenMpi4;
  bool is_root = false;
  std::string hostname;  ///< of this machine
};

/// Its words, up to and with rank_words: what each rank is, the command behind ddlrun's own words. environment: what ranks are to
/// have; its names are in the words, its values are not. Of a Slurm job whose nodes are all meant, mpirun asks Slurm. Pure.
/// Error kInvalidArgument: what this kind cannot do, and what to do instead. Nothing is dropped.
Result<std::vector<std::string>> mpirun_words(const JobSpec& spec, const Allocation& allocation,
                                              const MpiWishes& wishes, const MpirunSite& site,
                                              const Environment& environment,
                                              const std::vector<std::string>& rank_words);

/// What mpirun itself is to find in its environment beside ranks' variables: how ssh is to be called, for hydra; in a step of a Slurm
/// job, such as the shell of srun --pty, what the whole job has, and that its daemons are not to wait for the end of that step. own: this
/// process's. Pure.
Environment mpirun_environment(const JobSpec& spec, MpiFlavor flavor, const Allocation& allocation,
                               const Environment& own);

}  // namespace ddl::launcher
