// The mpirun that starts a job's ranks: which kind there is (Open MPI, PRRTE, hydra), its command line and
// environment, and how a process of ddlrun becomes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/node/job_presence.h"

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

/// From the output of "mpirun --version". Error: it is none of these kinds. Pure.
Result<MpiLauncher> mpi_launcher_of(std::string_view version_text);

/// The user's options for mpirun alone.
struct MpirunOptions {
  std::vector<std::string> mpi_args;      ///< passed on unchanged
  std::vector<std::string> binding_args;  ///< instead of ddlrun's own binding
  bool tcp_only = false;                  ///< messages go over TCP and shared memory alone
};

/// The mpirun that is started, and the machine on which that happens.
struct MpirunSite {
  std::string path = "mpirun";
  std::string name;  ///< "Open MPI 4.1.4", for a person
  MpiFlavor flavor = MpiFlavor::kOpenMpi4;
  bool is_root = false;
  std::string hostname;  ///< of this machine
};

/// The words of its command line. rank_words, the last of them, are the command of each rank, with the user's command
/// behind ddlrun's own words. environment: the variables that ranks are to have; the words hold their names and not
/// their values. If all nodes of a scheduler's job are meant, the words name none, and mpirun asks it. Pure.
/// Error kInvalidArgument: what this kind cannot do, and what to do instead. Nothing is dropped.
Result<std::vector<std::string>> mpirun_words(const JobSpec& spec, const Allocation& allocation,
                                              const MpirunOptions& options, const MpirunSite& site,
                                              const Environment& environment,
                                              const std::vector<std::string>& rank_words);

/// The variables for mpirun itself, besides those of the ranks: for hydra, the options of ssh; in a step of a
/// scheduler's job, such as the shell of srun --pty, the resources of the whole job, and that mpirun's daemons do not wait for
/// the end of that step. own: this process's environment. Pure.
Environment mpirun_environment(const JobSpec& spec, MpiFlavor flavor, const Allocation& allocation,
                               const Environment& own);

/// The variables that mpirun passes on to the ranks: this process's environment without those that describe this
/// process or this login, and those of -x. An empty value: only the name is used. Pure.
Environment mpi_rank_variables(const JobSpec& spec, const Allocation& allocation, const Environment& own);

// mpirun as ddlrun's only rank: it is started and ended by an agent, and starts the ranks itself.

/// The job whose one rank is mpirun, by become_mpirun(). ddlrun: this program's path. head: this process. Pure.
JobSpec mpirun_job(const JobSpec& spec, const Allocation& allocation, MpiFlavor flavor,
                   const std::string& ddlrun, const std::vector<std::string>& mpirun_words,
                   const Environment& own, const JobHead& head);

/// words: MASTER_ADDR or "", the names of variables to remove, separated by commas, and then mpirun's command line.
/// Executes mpirun in this process, without the variables by which the agent describes its rank. Returns only if that
/// fails: 127 or 126, after a sentence on standard error.
int become_mpirun(const std::vector<std::string>& words);

}  // namespace ddl::launcher
