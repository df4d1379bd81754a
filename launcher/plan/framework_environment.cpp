#include "launcher/plan/framework_environment.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "contract/environment.h"

namespace ddl::launcher {
namespace env = contract::env;

namespace {

std::string text(int value) { return std::to_string(value); }

/// Ranks of this role.
int count_of(const FrameworkJob& job, std::string_view role) {
  const auto found =
      std::find_if(job.roles.begin(), job.roles.end(), [&](const RankRole& one) { return one.name == role; });
  return found == job.roles.end() ? 0 : found->count;
}

constexpr char kJaxNodeList[] = "SLURM_STEP_NODELIST";

/// JAX recognises the processes of a scheduler's step by its variables.
bool needs_jax_step(const FrameworkJob& job) {
  return job.framework == Framework::kJax && !job.scheduler_variables.contains(kJaxNodeList);
}

}  // namespace

std::vector<std::string> tensorflow_configs(const RankRoles& roles,
                                            const std::vector<std::string>& addresses) {
  nlohmann::json config;
  for (int rank = 0; rank < std::ssize(addresses); ++rank)
    config["cluster"][role_of(roles, rank).name].push_back(addresses[rank]);
  std::vector<std::string> texts;
  for (int rank = 0; rank < std::ssize(addresses); ++rank) {
    const RoleOfRank role = role_of(roles, rank);
    config["task"] = {{"type", role.name}, {"index", role.index}};
    texts.push_back(config.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return texts;
}

// Of torch, the variables are those of torchrun, and NODE_RANK; of MXNet, those that ps-lite reads, its parameter servers.

Environment job_variables(const FrameworkJob& job) {
  Environment to;
  const auto told = [&job](std::string_view framework) { return is_told(job.framework, framework); };
  if (told("horovod")) to[env::kSize] = text(job.num_ranks);
  if (told("torch")) {
    to[env::kTorchWorldSize] = to["ROLE_WORLD_SIZE"] = text(job.num_ranks);
    to["GROUP_WORLD_SIZE"] = text(job.num_nodes);
    to["ROLE_NAME"] = "default";
    to[env::kMasterAddr] = job.servers.address;
    to[env::kMasterPort] = text(job.servers.port);
    to[env::kTorchRunId] = job.id;
    to["TORCHELASTIC_RESTART_COUNT"] = text(job.restarts);
    to["TORCHELASTIC_MAX_RESTARTS"] = text(job.max_restarts);
    to["TORCHELASTIC_USE_AGENT_STORE"] = "False";  // rank 0 serves the store itself
  }
  if (told("deepspeed")) to["CROSS_SIZE"] = text(job.num_nodes);
  if (told("jax")) to[env::kJaxCoordinator] = host_and_port(job.servers.address, job.servers.jax_port);
  if (needs_jax_step(job)) {
    to["SLURM_JOB_ID"] = text(job.servers.jax_port);  // any number will do
    to[kJaxNodeList] = job.node_list;
    to["SLURM_NTASKS"] = text(job.num_ranks);
  }
  if (told("mxnet")) {
    to["DMLC_NUM_WORKER"] = text(count_of(job, "worker"));
    to["DMLC_NUM_SERVER"] = text(count_of(job, "server"));
    to["DMLC_PS_ROOT_URI"] = job.servers.address;
    to[env::kMxnetRootPort] = text(job.servers.port);
  }
  return to;
}

Environment node_variables(const FrameworkJob& job, const FrameworkNode& node) {
  Environment to;
  const auto told = [&job](std::string_view framework) { return is_told(job.framework, framework); };
  if (told("horovod")) {
    to[env::kLocalSize] = text(node.local_size);
    to[env::kHostname] = node.hostname;
  }
  if (told("torch")) {
    to[env::kTorchLocalWorldSize] = text(node.local_size);
    to["GROUP_RANK"] = to["NODE_RANK"] = text(node.number);
  }
  if (told("deepspeed")) {
    to["CROSS_RANK"] = text(node.number);
    to["LOCAL_SIZE"] = text(node.local_size);
  }
  if (told("mxnet")) to["DMLC_NODE_HOST"] = node.address;
  return to;
}

Environment rank_variables(const FrameworkJob& job, const RankPlacement& rank) {
  Environment to;
  const auto told = [&job](std::string_view framework) { return is_told(job.framework, framework); };
  if (told("horovod")) {
    to[env::kRank] = text(rank.rank);
    to[env::kLocalRank] = text(rank.local_rank);
    to[env::kCrossRank] = text(rank.cross_rank);
    to[env::kCrossSize] = text(rank.cross_size);
  }
  if (told("torch")) {
    to[env::kTorchRank] = to["ROLE_RANK"] = text(rank.rank);
    to[env::kTorchLocalRank] = text(rank.local_rank);
  }
  if (needs_jax_step(job)) {
    to["SLURM_PROCID"] = text(rank.rank);
    to["SLURM_LOCALID"] = text(rank.local_rank);
  }
  if (told("tensorflow")) to[env::kTensorflowConfig] = job.tensorflow_configs.at(rank.rank);
  if (told("mxnet")) to["DMLC_ROLE"] = role_of(job.roles, rank.rank).name;
  return to;
}

Environment elastic_variables(const RankPlacement& rank, const std::string& hostname) {
  return {{env::kRank, text(rank.rank)},
          {env::kSize, text(rank.size)},
          {env::kLocalRank, text(rank.local_rank)},
          {env::kLocalSize, text(rank.local_size)},
          {env::kCrossRank, text(rank.cross_rank)},
          {env::kCrossSize, text(rank.cross_size)},
          {env::kHostname, hostname},
          {env::kHorovodElastic, "1"}};
}

Environment own_gpus_environment(Framework framework, std::size_t own_gpus) {
  if (own_gpus == 0 || !is_told(framework, "jax")) return {};
  std::vector<std::string> indices;
  for (std::size_t i = 0; i < own_gpus; ++i) indices.push_back(std::to_string(i));
  return {{env::kJaxLocalDeviceIds, join(indices, ",")}};
}

const std::vector<FrameworkVariables>& framework_variables() {
  using enum Framework;
  static const std::vector<FrameworkVariables> all = {
      // MXNet's scheduler and servers would be ranks to Horovod.
      {"horovod",
       {kAuto, kTorch, kTensorflow, kHorovod, kDeepspeed, kJax, kMpi},
       {env::kRank, env::kSize, env::kLocalRank, env::kLocalSize, env::kCrossRank, env::kCrossSize,
        env::kHostname},
       {env::kHorovodGlooAddress, env::kHorovodGlooPort, env::kHorovodElastic},
       {env::kHorovodController, env::kHorovodCpuOperations, env::kHorovodGlooIface}},
      {"torch",
       {kAuto, kTorch, kDeepspeed},
       {env::kTorchRank, env::kTorchWorldSize, env::kTorchLocalRank, env::kTorchLocalWorldSize, "GROUP_RANK",
        "GROUP_WORLD_SIZE", "NODE_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME", env::kMasterAddr,
        env::kMasterPort, env::kTorchRunId, "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_USE_AGENT_STORE"},
       {"TORCHELASTIC_ERROR_FILE"}},
      {"deepspeed", {kAuto, kDeepspeed}, {"CROSS_RANK", "CROSS_SIZE", "LOCAL_SIZE"}, {}},
      {"jax", {kAuto, kJax}, {env::kJaxCoordinator, env::kJaxLocalDeviceIds}, {}},
      {"tensorflow", {kTensorflow}, {env::kTensorflowConfig}, {}},
      {"mxnet",
       {kMxnet},
       {"DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_PS_ROOT_URI", env::kMxnetRootPort,
        "DMLC_NODE_HOST"},
       {}},
  };
  return all;
}

namespace {

template <class T>
bool has(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

std::string_view framework_of(std::string_view name) {
  for (const FrameworkVariables& one : framework_variables()) {
    if (has(one.set, name) || has(one.other, name) || has(one.settings, name)) return one.framework;
  }
  return "";
}

bool is_told_by(std::string_view name, Framework chosen) {
  const auto& all = framework_variables();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& one) { return has(one.set, name) && has(one.choices, chosen); });
}

bool is_told(Framework chosen, std::string_view framework) {
  const auto& all = framework_variables();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& one) { return one.framework == framework && has(one.choices, chosen); });
}

bool is_of_another_job(std::string_view name, Framework chosen) {
  if (chosen == Framework::kNone) return false;
  // Every process of ps-lite, MXNet's parameter servers, would listen on PORT.
  if (chosen == Framework::kMxnet && name == "PORT") return true;
  const auto& all = framework_variables();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& one) { return has(one.set, name) || has(one.other, name); });
}

}  // namespace ddl::launcher
