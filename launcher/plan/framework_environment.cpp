#include "launcher/plan/framework_environment.h"

#include <algorithm>

#include "contract/environment.h"

namespace ddl::launcher {
namespace env = contract::env;

namespace {

std::string text(int value) { return std::to_string(value); }

bool may_use(const JobSpec& spec, const NodeAddress& address) {
  return spec.network_interfaces.empty() ||
         std::find(spec.network_interfaces.begin(), spec.network_interfaces.end(), address.interface) !=
             spec.network_interfaces.end();
}

/// A node's first address that the job may use, IPv4 before IPv6 because not every program accepts an IPv6 address;
/// null: there is none.
const NodeAddress* first_address(const JobSpec& spec, const NodeFacts& facts) {
  for (const int family : {4, 6}) {
    for (const NodeAddress& address : facts.addresses) {
      if (address.family == family && may_use(spec, address)) return &address;
    }
  }
  return nullptr;
}

/// "10.0.0.1:4000", "[2001:db8::1]:4000".
std::string host_and_port(const std::string& address, int port) {
  const bool is_ipv6 = address.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + address + "]" : address) + ":" + text(port);
}

void add_horovod(const FrameworkJob& job, const RankPlacement& rank, const std::string& hostname,
                 Environment& to) {
  to[env::kRank] = text(rank.rank);
  to[env::kSize] = text(job.num_ranks);
  to[env::kLocalRank] = text(rank.local_rank);
  to[env::kLocalSize] = text(rank.local_size);
  to[env::kCrossRank] = text(rank.cross_rank);
  to[env::kCrossSize] = text(rank.cross_size);
  to[env::kHostname] = hostname;
}

/// As torchrun sets them, and NODE_RANK.
void add_torch(const FrameworkJob& job, const RankPlacement& rank, Environment& to) {
  to[env::kTorchRank] = to["ROLE_RANK"] = text(rank.rank);
  to[env::kTorchWorldSize] = to["ROLE_WORLD_SIZE"] = text(job.num_ranks);
  to[env::kTorchLocalRank] = text(rank.local_rank);
  to[env::kTorchLocalWorldSize] = text(rank.local_size);
  to["GROUP_RANK"] = to["NODE_RANK"] = text(rank.node);
  to["GROUP_WORLD_SIZE"] = text(job.num_nodes);
  to["ROLE_NAME"] = "default";
  to[env::kMasterAddr] = job.meeting.address;
  to[env::kMasterPort] = text(job.meeting.torch_port);
  to[env::kTorchRunId] = job.id;
  to["TORCHELASTIC_RESTART_COUNT"] = to["TORCHELASTIC_MAX_RESTARTS"] = "0";
  // Rank 0 serves the store itself.
  to["TORCHELASTIC_USE_AGENT_STORE"] = "False";
}

/// Beside torch's.
void add_deepspeed(const FrameworkJob& job, const RankPlacement& rank, Environment& to) {
  to["CROSS_RANK"] = text(rank.node);
  to["CROSS_SIZE"] = text(job.num_nodes);
  to["LOCAL_SIZE"] = text(rank.local_size);
}

void add_jax(const FrameworkJob& job, Environment& to) {
  to[env::kJaxCoordinator] = host_and_port(job.meeting.address, job.meeting.jax_port);
}

/// The variables by which JAX recognises the processes of a Slurm step. It only has to find a number for the job.
void add_slurm_for_jax(const FrameworkJob& job, const RankPlacement& rank, Environment& to) {
  to["SLURM_JOB_ID"] = text(job.meeting.jax_port);
  to["SLURM_STEP_NODELIST"] = job.node_list;
  to["SLURM_NTASKS"] = text(job.num_ranks);
  to["SLURM_PROCID"] = text(rank.rank);
  to["SLURM_LOCALID"] = text(rank.local_rank);
}

}  // namespace

bool tells_torch(Framework framework) {
  using enum Framework;
  return framework == kAuto || framework == kTorch || framework == kDeepspeed;
}

MeetingPoint meeting_point(const JobSpec& spec, const Placement& placement, const NodeFacts& facts) {
  MeetingPoint meeting;
  const NodeAddress* const address = first_address(spec, facts);
  meeting.address = placement.nodes.size() == 1 ? facts.master_address
                    : address != nullptr        ? address->address
                                                : placement.nodes.front().name;
  // A node without a free port has none for others either.
  constexpr int kTorchDefault = 29500, kJaxDefault = 61440;
  const auto port = [&](std::size_t index, int otherwise) {
    return index < facts.held_ports.size() ? facts.held_ports[index] : otherwise;
  };
  meeting.torch_port = port(0, kTorchDefault);
  meeting.jax_port = port(1, kJaxDefault);
  return meeting;
}

Environment framework_environment(const FrameworkJob& job, const RankPlacement& rank,
                                  const std::string& hostname) {
  using enum Framework;
  Environment environment;
  const Framework chosen = job.framework;
  if (chosen == kNone) return environment;
  add_horovod(job, rank, hostname, environment);
  if (tells_torch(chosen)) add_torch(job, rank, environment);
  if (chosen == kAuto || chosen == kDeepspeed) add_deepspeed(job, rank, environment);
  if (chosen == kAuto || chosen == kJax) add_jax(job, environment);
  if (chosen == kJax && !job.in_slurm) add_slurm_for_jax(job, rank, environment);
  return environment;
}

std::string gloo_interface(const JobSpec& spec, const Placement& placement, const NodeFacts& node) {
  const bool must_be_told = node.hostname_is_loopback || !spec.network_interfaces.empty();
  if (!tells_torch(spec.framework) || placement.nodes.size() == 1 || !must_be_told) return "";
  const NodeAddress* const address = first_address(spec, node);
  return address == nullptr ? "" : address->interface;
}

const std::vector<FrameworkVariables>& framework_variables() {
  static const std::vector<FrameworkVariables> all = {
      {"horovod",
       {env::kRank, env::kSize, env::kLocalRank, env::kLocalSize, env::kCrossRank, env::kCrossSize,
        env::kHostname},
       {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"}},
      {"torch",
       {env::kTorchRank, env::kTorchWorldSize, env::kTorchLocalRank, env::kTorchLocalWorldSize, "GROUP_RANK",
        "GROUP_WORLD_SIZE", "NODE_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME", env::kMasterAddr,
        env::kMasterPort, env::kTorchRunId, "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_USE_AGENT_STORE"},
       {"TORCHELASTIC_ERROR_FILE"}},
      {"deepspeed", {"CROSS_RANK", "CROSS_SIZE", "LOCAL_SIZE"}, {}},
      {"jax", {env::kJaxCoordinator}, {}},
      {"tensorflow", {}, {"TF_CONFIG"}},
      {"mxnet",
       {},
       {"DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_NUM_SERVER", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT",
        "DMLC_NODE_HOST"}},
  };
  return all;
}

namespace {

bool has(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string_view framework_of(std::string_view name) {
  for (const FrameworkVariables& one : framework_variables()) {
    if (has(one.set, name)) return one.framework;
  }
  return "";
}

bool is_of_framework(std::string_view name) {
  const auto& all = framework_variables();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& one) { return has(one.set, name) || has(one.other, name); });
}

}  // namespace ddl::launcher
