#include "launcher/plan/rank_environment.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "contract/environment.h"
#include "contract/operations.h"
#include "launcher/plan/framework_environment.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::launcher {
namespace env = contract::env;

bool is_denied(std::string_view name) {
  // Set by an outer launcher for the process that ddlrun runs in: a rank would take them for its own.
  constexpr std::array<std::string_view, 7> kPrefixes = {
      "PMIX_", "PMI_", "PMI2_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PRTE_", "HYDI_"};
  constexpr std::array<std::string_view, 14> kNames = {
      // Of another ddlrun, of whose job this process is a rank.
      env::kJobKeyFd, env::kRankRecord, env::kGeneration,
      // Open MPI's orted sets more variables for its children than the prefixes above cover.
      "OMPI_APP_CTX_NUM_PROCS", "OMPI_FIRST_RANKS", "OMPI_NUM_APP_CTX", "OMPI_MCA_orte_hnp_uri",
      "OMPI_MCA_orte_local_daemon_uri", "OMPI_MCA_orte_jobid", "OMPI_MCA_orte_vpid",
      "OMPI_MCA_orte_ess_node_rank", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_ess_base_vpid",
      "OMPI_MCA_initial_wdir"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_set_for_every_rank(std::string_view name, Framework framework) {
  return is_told_by(name, framework) || name == env::kPmixNamespace || name == env::kPmixRank;
}

Environment common_environment(const Environment& head, const std::vector<EnvironmentExport>& exports,
                               Framework framework) {
  Environment environment;
  for (const auto& [name, value] : head) {
    if (!is_denied(name) && !is_of_scheduler_task(name) && !is_of_another_job(name, framework))
      environment.emplace(name, value);
  }
  // Open MPI 4.1 rejects a PMIx environment that is not its own and runs N singletons, unless these variables exclude
  // that and state that it is bound already; ",slurm" because SLURM_JOBID without SLURM_STEP_ID has the same effect.
  // They replace the values of an outer mpirun; -x replaces them. ess=pmi would do for a rank, but an mpirun that a
  // rank starts would exit with it, without a message.
  environment["OMPI_MCA_schizo"] = "^orte,slurm";
  environment["OMPI_MCA_ess"] = "^singleton";
  environment["OMPI_MCA_hwloc_base_binding_policy"] = "none";
  environment["OMPI_MCA_orte_externally_bound"] = "1";
  for (const EnvironmentExport& one : exports) {
    if (one.value) {
      environment[one.name] = *one.value;
    } else if (const auto inherited = head.find(one.name); inherited != head.end()) {
      environment[one.name] = inherited->second;
    }
  }
  environment.try_emplace(env::kPythonUnbuffered, "1");
  return environment;
}

std::optional<DefaultVariable> mpich_pmi_version(const Environment& environment) {
  for (const char* const name : {"MPIR_CVAR_PMI_VERSION", "MPICH_PMI_VERSION", "MPIR_PARAM_PMI_VERSION"}) {
    if (environment.contains(name)) return std::nullopt;
  }
  return DefaultVariable{"MPIR_CVAR_PMI_VERSION", "1", "MPICH"};
}

std::vector<DefaultVariable> default_variables(const JobSpec& spec, const Environment& own,
                                               const std::vector<DefaultVariable>& others) {
  Environment set = own;
  for (const EnvironmentExport& one : spec.exports) {
    if (one.value) set[one.name] = *one.value;
  }
  std::vector<DefaultVariable> defaults;
  const auto add = [&](const DefaultVariable& one) {
    if (set.try_emplace(one.name, one.value).second) defaults.push_back(one);
  };
  if (has_agents(spec)) {
    if (const auto version = mpich_pmi_version(set)) add(*version);
    // Without it, MPI_Comm_spawn of Intel MPI 2021.18 ends with SIGSEGV if the job has one host.
    add({"I_MPI_SPAWN", "1", "Intel MPI"});
  }
  // "=": exactly these names, not all that begin so.
  if (!spec.network_interfaces.empty())
    add({env::kNcclSocketIfname, "=" + join(spec.network_interfaces, ","), "--network-interfaces"});
  if (value_of(set, env::kDeterministic) == "1") {
    for (const auto& [name, value] : contract::kDeterministicNccl)
      add({name, value, std::string(env::kDeterministic) + "=1"});
  }
  if (is_told(spec.framework, "torch")) {
    // As torchrun does. The second name is that of newer versions.
    for (const char* const name : {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"})
      add({name, "1", "torch"});
  }
  for (const DefaultVariable& one : others) add(one);
  return defaults;
}

std::vector<std::string> login_variables(const std::vector<EnvironmentExport>& exports) {
  std::vector<std::string> names = {// Who and where.
                                    "HOME", "USER", "LOGNAME", "SHELL", "MAIL", "HOSTNAME", "HOST",
                                    // Sockets and screens of one session.
                                    "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK",
                                    "SSH_AGENT_PID", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
                                    "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_SESSION_ID",
                                    "XDG_SEAT", "XDG_VTNR"};
  for (const Scheduler* const scheduler : schedulers())
    for (std::string& name : scheduler->node_variables()) names.push_back(std::move(name));
  std::erase_if(names, [&](const std::string& name) {
    return std::any_of(exports.begin(), exports.end(), [&](const auto& one) { return one.name == name; });
  });
  return names;
}

Environment thread_environment(const RankPlacement& rank, const NodeFacts& node, const Environment& common) {
  if (common.contains(env::kOmpNumThreads)) return {};
  return {{env::kOmpNumThreads, std::to_string(std::max(1, node.allowed_cores / rank.local_size))}};
}

}  // namespace ddl::launcher
