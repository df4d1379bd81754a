// The mpirun that starts a job's ranks: which kind there is (Open MPI, PRRTE, hydra), its command line and environment, and
// how a process of ddlrun becomes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"

namespace ddl::launcher {

/// Which kind of mpirun there is: their options differ.
enum class MpiFlavor {
  kOpenMpi4,  ///< Open MPI up to 4.1, whose mpirun is ORTE's
  kPrrte,     ///< Open MPI 5 and prterun
  kHydra,     ///< MPICH, Intel MPI and others of its family
};

struct MpiLauncher {
  MpiFlavor flavor = MpiFlavor::kOpenMpi4;
  std::string name;  ///< "Open MPI 4.1.4", for a person
};

/// Of what "mpirun --version" prints. Error: none of those. Pure.
Result<MpiLauncher> mpi_launcher_of(std::string_view version_text);

// The mpirun that starts a job's ranks, for each kind of MPI.

/// What the user gives for mpirun alone.
struct MpirunOptions {
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
                                              const MpirunOptions& options, const MpirunSite& site,
                                              const Environment& environment,
                                              const std::vector<std::string>& rank_words);

/// What mpirun itself is to find in its environment beside ranks' variables: how ssh is to be called, for hydra; in a step of a Slurm
/// job, such as the shell of srun --pty, what the whole job has, and that its daemons are not to wait for the end of that step. own: this
/// process's. Pure.
Environment mpirun_environment(const JobSpec& spec, MpiFlavor flavor, const Allocation& allocation,
                               const Environment& own);

/// What mpirun is to pass on to the ranks: this process's environment without what describes this process or this
/// login, and what -x says. An empty value: the name alone counts. Pure.
Environment mpi_rank_variables(const JobSpec& spec, const Allocation& allocation, const Environment& own);

// mpirun as ddlrun's only rank: it is started and ended by an agent, and starts the ranks itself.

/// The job whose one rank is mpirun, by become_mpirun(). ddlrun: this program's path. Pure.
JobSpec mpirun_job(const JobSpec& spec, const Allocation& allocation, MpiFlavor flavor,
                   const std::string& ddlrun, const std::vector<std::string>& mpirun_words,
                   const Environment& own);

/// words: MASTER_ADDR or "", names of variables to forget by comma, and then mpirun's own. Becomes it, without what the agent has told its
/// rank about itself. Returns only if that fails: 127 or 126, after a sentence on standard error.
int become_mpirun(const std::vector<std::string>& words);

}  // namespace ddl::launcher
