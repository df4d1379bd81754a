// The environment that a rank is started with, beside what frameworks read (framework_environment.h): the head's own,
// and -x. Pure: text in, text out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher {

/// True for variables that must not reach ranks: those by which an outer launcher (PMIx, PMI, Open MPI) has
/// described *this* process. docs/reference/environment.md lists them.
bool is_denied(std::string_view name);

/// True for variables that ddlrun sets for each rank, with this framework: its identity, and where the others are. With
/// -x all ranks would get the same value, and so would be the same rank.
bool is_set_for_every_rank(std::string_view name, Framework framework);

/// A variable that ranks get because neither ddlrun's environment nor -x sets it.
struct DefaultVariable {
  std::string name;
  std::string value;
  std::string origin;  ///< what asks for it: "--network-interfaces", "site lumi-g"
  bool operator==(const DefaultVariable&) const = default;
};

/// The variable by which MPICH 5 takes PMI-1 where it finds PMIx as well: by itself it ends then, with an error message.
/// MPICH since 4.2 reads the variable, and takes PMI-1 anyway, unless it was built with PMIx alone: then PMIx.
/// nullopt: the environment has it by one of MPICH's three names. Pure.
std::optional<DefaultVariable> mpich_pmi_version(const Environment& environment);

/// The default variables of a job: what MPIs need to join ddlrun's agents, those that --network-interfaces and
/// DDL_DETERMINISTIC=1 mean for NCCL, then others. Except the first, they are the same for agents, srun and mpirun. If a
/// variable has several defaults, the first one counts. own: ddlrun's environment, to which the caller adds the result.
/// Pure.
std::vector<DefaultVariable> default_variables(const JobSpec& spec, const Environment& own,
                                               const std::vector<DefaultVariable>& others);

/// The variables that all ranks share: the head's environment without the denied names and those by which a framework
/// has been told of another job, then the variables that
/// make Open MPI 4.1 accept a PMIx server that is not its own, then -x, then PYTHONUNBUFFERED if it is not set.
Environment common_environment(const Environment& head, const std::vector<EnvironmentExport>& exports,
                               Framework framework = Framework::kAuto);

/// The names of variables that describe a login on one machine rather than the job: HOME, USER, SSH_CONNECTION,
/// ...; and Scheduler::node_variables(). Without those that -x names.
std::vector<std::string> login_variables(const std::vector<EnvironmentExport>& exports);

/// OMP_NUM_THREADS, unless common has it. node: the facts of the rank's own node.
Environment thread_environment(const RankPlacement& rank, const NodeFacts& node, const Environment& common);

}  // namespace ddl::launcher
